#pragma once

#include <filesystem>

#include "sim/base/diagnostic.h"

namespace hdpsim {

/// Whether a file holds what `nvidia-smi topo -m` prints: the kind of way from each device of a node to each other one.
[[nodiscard]] bool holds_topology_matrix(const std::filesystem::path& file);

/// Reports such a file: it has no rates, of which a cluster is made, and says what to take instead.
void refuse_topology_matrix(const std::filesystem::path& file, Diagnostics& diagnostics);

}  // namespace hdpsim
