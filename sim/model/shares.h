#pragma once

#include <cstdint>

#include "sim/base/check.h"
#include "sim/model/transformer.h"

namespace hdpsim {

/// The part of one device when `count` is divided over `by` devices, the last of which may have less. Requires `by` > 0
/// (checked).
[[nodiscard]] inline std::int64_t divided(std::int64_t count, std::int64_t by) {
  HDPSIM_CHECK(by > 0, "division by {}", by);
  return (count + by - 1) / by;
}

/// Columns of the queries of all heads, and rows of the output projection.
[[nodiscard]] inline std::int64_t query_width(const Transformer& model) {
  return model.heads * model.head_dim;
}

/// Columns of the keys of all heads; values have as many.
[[nodiscard]] inline std::int64_t kv_width(const Transformer& model) {
  return model.kv_heads * model.head_dim;
}

}  // namespace hdpsim
