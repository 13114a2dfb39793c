#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hdpsim {

/// Indices first, first + step, ... up to last (without: the last one that there is).
struct IndexRange {
  std::int64_t first = 0;
  std::optional<std::int64_t> last = {};
  std::int64_t step = 1;
};

/// `17`, `32-39`, `every 64` or `every 64 from 3`; nothing for anything else.
[[nodiscard]] std::optional<IndexRange> parse_index_range(std::string_view text);

}  // namespace hdpsim
