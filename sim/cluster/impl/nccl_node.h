#pragma once

#include <string>
#include <vector>

#include "sim/cluster/impl/nccl_topology.h"
#include "sim/document/document.h"

namespace hdpsim {

/// What a topology says in the words of a cluster file.
struct NcclNode {
  Value keys = Value::map();       ///< `gpus`, `nvlink`, `nics` and `pcie` of a node.
  std::vector<std::string> notes;  ///< What was read, and what of it the model of a node does not have.
};

/// Rates are line rates, as in every cluster file; NCCL's own figures for a link (20.6 GB/s of 25 on sm 90) are what
/// software gets of them, which is the profile's business. Keys that `written` has are the user's: they are neither
/// derived nor checked. What no node of the model can be is reported at its place in the topology.
[[nodiscard]] NcclNode node_of_topology(const NcclTopology& topology, const Value& written, bool needs_nics,
                                        Diagnostics& diagnostics);

}  // namespace hdpsim
