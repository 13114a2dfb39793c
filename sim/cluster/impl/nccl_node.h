#pragma once

#include <string>
#include <vector>

#include "sim/cluster/impl/nccl_topology.h"
#include "sim/document/document.h"

namespace hdpsim {

/// A topology translated to the keys of a cluster file.
struct NcclNode {
  Value keys = Value::map();       ///< `gpus`, `nvlink`, `nics` and `pcie` of a node.
  std::vector<std::string> notes;  ///< What was read, and which parts of it the model of a node lacks.
};

/// The node that a topology describes. Rates are line rates, as in every cluster file; NCCL's own figures for a link
/// (20.6 GB/s of 25 on sm 90) are what software reaches, which is part of the profile. Keys that `written` has are the
/// user's: they are neither derived nor checked. What the model of a node cannot represent is reported at its place in
/// the topology.
[[nodiscard]] NcclNode node_of_topology(const NcclTopology& topology, const Value& written, bool needs_nics,
                                        Diagnostics& diagnostics);

}  // namespace hdpsim
