#pragma once

#include <optional>

namespace hdpsim::app {

/// How many processes mpirun or srun has started this one with; nothing if it runs alone. InputError if torchrun has
/// started it, whose processes only NCCL joins.
[[nodiscard]] std::optional<int> launched_processes();

}  // namespace hdpsim::app
