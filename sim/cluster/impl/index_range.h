#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hdpsim {

/// Indices first, first + step, ... up to last; if empty, up to the last index that exists.
struct IndexRange {
  std::int64_t first = 0;
  std::optional<std::int64_t> last = {};
  std::int64_t step = 1;
};

/// Parses `17`, `32-39`, `every 64` or `every 64 from 3`; empty for any other text.
[[nodiscard]] std::optional<IndexRange> parse_index_range(std::string_view text);

}  // namespace hdpsim
