#include "sim/cluster/impl/keys.h"

#include <fmt/format.h>

#include <charconv>

namespace hdpsim {

std::optional<NumberRange> parse_number_range(std::string_view text) {
  NumberRange range;
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, range.first);
  if (first.ec != std::errc{} || range.first < 0) return std::nullopt;
  range.last = range.first;
  if (first.ptr == end) return range;
  if (*first.ptr != '-') return std::nullopt;
  const auto last = std::from_chars(first.ptr + 1, end, range.last);
  if (last.ec != std::errc{} || last.ptr != end || range.last < range.first) return std::nullopt;
  return range;
}

bool require_map(const Value& value, std::string_view what, std::string_view example, Diagnostics& diagnostics) {
  if (value.is_map()) return true;
  diagnostics.error(value.position, fmt::format("{} must be a map, found {}", what, kind_name(value.kind)),
                    fmt::format("write {}", example));
  return false;
}

}  // namespace hdpsim
