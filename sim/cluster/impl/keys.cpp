#include "sim/cluster/impl/keys.h"

#include <fmt/format.h>

#include <charconv>

namespace hdpsim {
namespace {

constexpr Between<Bytes> limits_of(Bytes) {
  return limits::memory;
}
constexpr Between<Bandwidth> limits_of(Bandwidth) {
  return limits::bandwidth;
}

}  // namespace

template <class T>
T positive(const Value& value, std::string_view key, Diagnostics& diagnostics) {
  return read_in<T>(value, fmt::format("'{}'", key), limits_of(T{}), diagnostics).value_or(T{});
}

template <class T>
T positive(MapReader& map, std::string_view key) {
  const Value* value = map.require(key);
  return value == nullptr ? T{} : positive<T>(*value, key, map.diagnostics());
}

template Bytes positive<Bytes>(MapReader& map, std::string_view key);
template Bandwidth positive<Bandwidth>(MapReader& map, std::string_view key);
template Bytes positive<Bytes>(const Value& value, std::string_view key, Diagnostics& diagnostics);
template Bandwidth positive<Bandwidth>(const Value& value, std::string_view key, Diagnostics& diagnostics);

Duration latency(MapReader& map, std::string_view key) {
  return map.optional_in<Duration>(key, limits::latency).value_or(Duration{});
}

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
