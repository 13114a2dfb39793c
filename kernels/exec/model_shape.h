#pragma once

#include <cstdint>

#include "sim/model/transformer.h"

namespace hdpsim::kernels::exec {

/// 64 bits of all that decides what a model computes and what its parameters are, whatever its name: equal for models
/// of the same shape, and else different but for chance.
[[nodiscard]] std::uint64_t shape_fingerprint(const Transformer& model);

/// Whether both have the same shape.
[[nodiscard]] inline bool same_shape(const Transformer& a, const Transformer& b) {
  return shape_fingerprint(a) == shape_fingerprint(b);
}

}  // namespace hdpsim::kernels::exec
