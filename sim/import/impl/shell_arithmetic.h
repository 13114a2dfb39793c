#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace hdpsim {

/// The value of `8*NODES + 1`: whole numbers, + - * / %, parentheses, and names, whose texts `value_of` gives. Empty if
/// it is anything else, divides by zero or does not fit into 64 bits.
[[nodiscard]] std::optional<std::int64_t> shell_arithmetic(
    std::string_view text, const std::function<std::optional<std::string>(const std::string&)>& value_of);

}  // namespace hdpsim
