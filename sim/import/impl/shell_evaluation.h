#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/import/shell_script.h"

namespace hdpsim {

/// Whether a text matches a shell's pattern of `*`, `?` and `[a-z]`.
[[nodiscard]] bool matches_pattern(std::string_view text, std::string_view pattern);

/// Whether a condition holds: the words between `[[` and `]]` or behind `test`, with `&&`, `||`, `!`, `(` and `)` as
/// words of their own. Empty if that depends on the machine (files, patterns) or on what is not known.
[[nodiscard]] std::optional<bool> shell_condition(const std::vector<ShellText>& words);

/// What an expression of a shell's arithmetic comes to.
struct ShellSum {
  std::optional<std::int64_t> value;             ///< Empty if it is not known.
  std::map<std::string, std::int64_t> assigned;  ///< What `=`, `+=`, `++` and the like set, by name.
  int terms = 0;                                 ///< How many were computed.
};

/// The value of an expression in 64 bits: numbers, names, `+ - * / % **`, comparisons, `! && || ?:`, bits, and
/// assignments. `value_of` is asked for the text of a name, which may be an expression, too.
[[nodiscard]] ShellSum shell_arithmetic(std::string_view text,
                                        const std::function<std::optional<std::string>(const std::string&)>& value_of);

/// The names that an expression may set.
[[nodiscard]] std::vector<std::string> names_set_by_arithmetic(std::string_view text);

}  // namespace hdpsim
