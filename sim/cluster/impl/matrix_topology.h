#pragma once

#include <optional>
#include <string>

#include "sim/cluster/impl/nccl_topology.h"

namespace hdpsim {

/// Reads the output of `nvidia-smi topo -m` as a topology: which GPUs NVLinks join, and which devices share a PCIe
/// switch or a CPU. It states no rates: those are of a device with this compute capability (in tenths), and what was
/// assumed is among the topology's assumptions. Empty, with the problems reported at their places, if the table is
/// incomplete or contradictory, or the capability is not known.
[[nodiscard]] std::optional<NcclTopology> read_matrix_topology(const std::string& file, const std::string& text,
                                                               int compute_capability, Diagnostics& diagnostics);

}  // namespace hdpsim
