#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/impl/nccl_topology.h"

namespace hdpsim {

/// The NICs of a node as the model has them: equal ones, with the gpus divided among them in their order.
struct NicAssignment {
  std::int64_t count = 0;
  Bandwidth rate;  ///< Rate of one NIC, at most that of its PCIe link.
  std::int64_t ports = 1;
  std::vector<std::string> notes;  ///< NICs that are left out or merged, gpus whose nearest NIC is another one.
};

/// The fastest NICs of a topology, each with the gpus that are nearest to it. Empty, with the problem reported, if they
/// cannot be divided evenly.
[[nodiscard]] std::optional<NicAssignment> assign_nics(const NcclTopology& topology, Diagnostics& diagnostics);

}  // namespace hdpsim
