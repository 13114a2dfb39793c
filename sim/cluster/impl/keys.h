#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "sim/document/reader.h"

namespace hdpsim {

/// The amount of a required key, which must lie in limits::memory or, a rate, in limits::bandwidth. Zero, and a report,
/// if it does not.
template <class T>
[[nodiscard]] T positive(MapReader& map, std::string_view key);
/// The same of a key that is there.
template <class T>
[[nodiscard]] T positive(const Value& value, std::string_view key, Diagnostics& diagnostics);
/// Of an optional key; must lie in limits::latency.
[[nodiscard]] Duration latency(MapReader& map, std::string_view key = "latency");

/// Inclusive.
struct NumberRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
};
/// `12` or `0-31`; nothing for anything else.
[[nodiscard]] std::optional<NumberRange> parse_number_range(std::string_view text);

/// False, and a report with an example, if the value is no map.
[[nodiscard]] bool require_map(const Value& value, std::string_view what, std::string_view example,
                               Diagnostics& diagnostics);

}  // namespace hdpsim
