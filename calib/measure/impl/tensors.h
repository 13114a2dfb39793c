#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/spec/backend.h"

namespace hdpsim::calib {

/// Device memory of one workload with random content at random places, freed with it.
class Tensors {
 public:
  Tensors(kernels::Backend& backend, std::uint64_t seed) : backend_(backend), seed_(seed) {}

  /// `count` elements of the backend's type, uniform with mean 0 and variance 1.
  void* elements(std::int64_t count);
  /// The same number of fp32 values.
  float* floats(std::int64_t count);
  /// fp32, uniform in [0, 1), as second moments are.
  float* positive_floats(std::int64_t count);
  /// Integers, uniform in [0, bound).
  std::int32_t* integers(std::int64_t count, std::int64_t bound);
  /// 0, 1, 2, ...: positions of the tokens of one document.
  std::int32_t* positions(std::int64_t count);
  /// Zeros, for sums that kernels add to, and for results that they write.
  float* sums(std::int64_t count);
  void* results(std::int64_t count);

 private:
  void* allocate(std::size_t bytes);
  /// Repeats `pattern` over `bytes` bytes.
  void fill(void* data, std::size_t bytes, std::span<const std::byte> pattern);
  void* random(std::int64_t count, kernels::Element element, float low, float high);

  kernels::Backend& backend_;
  std::uint64_t seed_;
  std::vector<kernels::DeviceMemory> memory_;
};

}  // namespace hdpsim::calib
