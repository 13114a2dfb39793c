#pragma once

#include <cstddef>
#include <cstdint>

namespace hdpsim::kernels::exec {

/// Bytes of as many fp32 numbers.
inline std::size_t float_bytes(std::int64_t count) {
  return static_cast<std::size_t>(count) * sizeof(float);
}

}  // namespace hdpsim::kernels::exec
