#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "sim/base/diagnostic.h"

namespace hdpsim {

/// Whether a file holds what `nvidia-smi topo -m` prints: the kind of way from each device of a node to each other one.
[[nodiscard]] bool holds_topology_matrix(const std::filesystem::path& file);

/// A text without the sequences that underline or colour it on a terminal, as nvidia-smi does with the header.
[[nodiscard]] std::string without_escapes(std::string_view text);

/// Reports such a file where a cluster is expected: it has no rates, and says how a cluster names it.
void refuse_topology_matrix(const std::filesystem::path& file, Diagnostics& diagnostics);

}  // namespace hdpsim
