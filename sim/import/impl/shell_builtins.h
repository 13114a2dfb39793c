#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/import/shell_script.h"

namespace hdpsim {

/// Whether a command's words may be assignments: export, declare and the like.
[[nodiscard]] bool declares(const std::string& command);

/// Whether a command is run for its answer: which, grep, nvidia-smi and the like.
[[nodiscard]] bool asks_machine(std::string_view command);

/// Whether a command only writes its words: echo and the like.
[[nodiscard]] bool says_words(std::string_view command);

/// The variables that a command of the shell itself (let, read, mapfile, getopts, printf -v) sets to what an expression
/// or the machine says. Empty if it is no such command.
[[nodiscard]] std::optional<std::vector<std::string>> names_set_by_builtin(const ShellCommand& command);

}  // namespace hdpsim
