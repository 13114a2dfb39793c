#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hdpsim {

/// What an expression of a shell's arithmetic comes to.
struct ShellSum {
  std::optional<std::int64_t> value;             ///< Empty if the script does not tell it.
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
