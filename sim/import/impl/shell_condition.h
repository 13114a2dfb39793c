#pragma once

#include <optional>
#include <vector>

#include "sim/import/shell_script.h"

namespace hdpsim {

/// Whether a condition holds: the words between `[[` and `]]` or behind `test`, with `&&`, `||`, `!`, `(` and `)` as
/// words of their own. Empty if that depends on the machine (files, patterns) or on what is not known.
[[nodiscard]] std::optional<bool> shell_condition(const std::vector<ShellText>& words);

}  // namespace hdpsim
