#pragma once

#include <cstdint>

#include "sim/base/check.h"

namespace hdpsim {

/// `count` over `by`, rounded up: the largest part where `count` is divided into `by` parts as equal as can be.
/// Requires `count` >= 0 and `by` > 0 (the latter is checked).
[[nodiscard]] inline std::int64_t divided(std::int64_t count, std::int64_t by) {
  HDPSIM_CHECK(by > 0, "division by {}", by);
  return count / by + (count % by > 0 ? 1 : 0);  // which no count overflows
}

/// The least multiple of `by` that is not below `count`.
[[nodiscard]] inline std::int64_t rounded_up(std::int64_t count, std::int64_t by) {
  return divided(count, by) * by;
}

}  // namespace hdpsim
