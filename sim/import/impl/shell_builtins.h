#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/import/shell_script.h"

namespace hdpsim {

/// Whether a command's words may be assignments: export, declare and the like.
[[nodiscard]] bool declares(const std::string& command);

/// The variables that a command of the shell itself (let, read, mapfile, printf -v, eval) sets to what an expression or
/// the machine says; of eval none are known. Empty if it is no such command.
[[nodiscard]] std::optional<std::vector<std::string>> names_set_by_builtin(const ShellCommand& command);

}  // namespace hdpsim
