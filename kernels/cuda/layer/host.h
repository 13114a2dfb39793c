#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>

#include "kernels/cuda/impl/runtime.h"
#include "kernels/spec/error.h"

/// Choice among the variants of a layer kernel.
namespace hdpsim::kernels::cuda::layer {

/// Whether chunks have 8 elements: true if every row of every tensor begins at a multiple of 16 bytes; otherwise they
/// have 1.
inline bool takes_chunks_of_8(std::initializer_list<const void*> tensors,
                              std::initializer_list<std::int64_t> widths = {}) {
  for (const void* const tensor : tensors) {
    if (reinterpret_cast<std::uintptr_t>(tensor) % 16 != 0) return false;
  }
  for (const std::int64_t width : widths) {
    if (width % 8 != 0) return false;
  }
  return true;
}

/// Calls launch(std::integral_constant<int, 8>) or launch(std::integral_constant<int, 1>).
template <class Launch>
void with_chunk(bool of_8, const Launch& launch) {
  if (of_8) {
    launch(std::integral_constant<int, 8>{});
  } else {
    launch(std::integral_constant<int, 1>{});
  }
}

inline void check_launch(const char* kernel) {
  check(cudaGetLastError(), kernel);
}

inline void require_at_most(const char* what, std::int64_t value, std::int64_t most) {
  if (value > most) {
    throw UnsupportedInput(std::string(what) + " of " + std::to_string(value) + ": GPU kernels take at most " +
                           std::to_string(most));
  }
}

}  // namespace hdpsim::kernels::cuda::layer
