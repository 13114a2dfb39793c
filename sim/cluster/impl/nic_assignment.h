#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/impl/nccl_topology.h"

namespace hdpsim {

/// The NICs of a node as the model has them: equal ones, the gpus divided among them in their order.
struct NicAssignment {
  std::int64_t count = 0;
  Bandwidth rate;  ///< Of one, at most what its PCIe link carries.
  std::int64_t ports = 1;
  std::vector<std::string> notes;  ///< NICs left out or taken together, gpus whose nearest NIC is another one.
};

/// The fastest NICs of a topology, each with the gpus that hang nearest to it. Nothing, and what is wrong is reported,
/// if they cannot be divided evenly.
[[nodiscard]] std::optional<NicAssignment> assign_nics(const NcclTopology& topology, Diagnostics& diagnostics);

}  // namespace hdpsim
