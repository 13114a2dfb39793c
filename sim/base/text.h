#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <type_traits>

namespace hdpsim {

/// Appends what these arguments look like in the format to the text.
void append_formatted(std::string& text, fmt::string_view format, fmt::format_args arguments);

/// fmt::format, appending. (fmt::format_to would be compiled anew, with all that formats numbers, in every source that
/// has it.)
template <class... Arguments>
void append(std::string& text, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  append_formatted(text, format, fmt::make_format_args(arguments...));
}

/// All texts or numbers of a range in their order, with the separator between each two.
template <class Range>
[[nodiscard]] std::string joined(const Range& range, std::string_view separator) {
  std::string all;
  std::string_view before;
  for (const auto& each : range) {
    all += before;
    before = separator;
    if constexpr (std::is_convertible_v<decltype(each), std::string_view>) {
      all += each;
    } else {
      append(all, "{}", each);
    }
  }
  return all;
}

}  // namespace hdpsim
