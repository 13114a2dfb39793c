#pragma once

#include <algorithm>
#include <array>
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

/// One of these arguments is in every training run of Megatron-LM.
inline constexpr std::array<std::string_view, 3> signs_of_training = {"--num-layers", "--hidden-size",
                                                                      "--micro-batch-size"};

/// Whether a text holds one of them, with dashes or underscores.
[[nodiscard]] inline bool names_training(std::string text) {
  std::replace(text.begin(), text.end(), '_', '-');
  return std::any_of(signs_of_training.begin(), signs_of_training.end(),
                     [&](std::string_view sign) { return text.find(sign) != std::string::npos; });
}

}  // namespace hdpsim
