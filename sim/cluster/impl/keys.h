#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "sim/document/reader.h"

namespace hdpsim {

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
