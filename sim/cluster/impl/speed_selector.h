#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hdpsim {

/// Devices first, first + step, ... up to last (without: the last one of the cluster).
struct SpeedSelector {
  std::int64_t first = 0;
  std::optional<std::int64_t> last = {};
  std::int64_t step = 1;
};

/// `17`, `32-39`, `every 64` or `every 64 from 3`; nothing for anything else.
[[nodiscard]] std::optional<SpeedSelector> parse_speed_selector(std::string_view text);

}  // namespace hdpsim
