#pragma once

#include <string>
#include <vector>

#include "sim/app/command_text.h"

namespace hdpsim::app {

/// The supported shells: `bash`, `zsh`, `fish`.
[[nodiscard]] const std::vector<std::string>& shell_names();

/// A script with which a shell completes the program's commands, options and values. `shell` is one of shell_names().
[[nodiscard]] std::string completion_script(const std::string& shell, const CommandText& program);

}  // namespace hdpsim::app
