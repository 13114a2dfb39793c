#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hdpsim {

/// The value of `8*NODES + 1`: whole numbers, + - * / %, parentheses, and names, whose texts `value_of` gives. Empty if
/// it is anything else (octal numbers, ten thousand terms), divides by zero or does not fit into 64 bits.
[[nodiscard]] std::optional<std::int64_t> shell_arithmetic(
    std::string_view text, const std::function<std::optional<std::string>(const std::string&)>& value_of);

/// The names to which an expression such as `G *= 2, --n` assigns, in their order.
[[nodiscard]] std::vector<std::string> names_set_by_arithmetic(std::string_view text);

}  // namespace hdpsim
