#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "sim/document/reader.h"

namespace hdpsim {

/// The amount of a required key, which must lie in limits::memory or, for a rate, in limits::bandwidth. Zero, with a
/// problem reported, if it does not.
template <class T>
[[nodiscard]] T positive(MapReader& map, std::string_view key);
/// The same for the value of a key that is present.
template <class T>
[[nodiscard]] T positive(const Value& value, std::string_view key, Diagnostics& diagnostics);
/// The latency of an optional key; must lie in limits::latency.
[[nodiscard]] Duration latency(MapReader& map, std::string_view key = "latency");

/// An inclusive range of indices.
struct NumberRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
};
/// Parses `12` or `0-31`; empty for any other text.
[[nodiscard]] std::optional<NumberRange> parse_number_range(std::string_view text);

/// False, with a problem and an example reported, if the value is not a map.
[[nodiscard]] bool require_map(const Value& value, std::string_view what, std::string_view example,
                               Diagnostics& diagnostics);

}  // namespace hdpsim
