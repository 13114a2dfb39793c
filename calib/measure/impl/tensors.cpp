#include "calib/measure/impl/tensors.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "sim/base/random.h"

namespace hdpsim::calib {
namespace {

// Random numbers are drawn once for this many elements and then repeated: enough that no kernel can profit.
constexpr std::int64_t pattern_length = std::int64_t{1} << 18;

// Tensors whose addresses differ by a power of two compete for the same lines of a cache, and the allocator decides
// which ones do: it made small attention 10 % slower or faster. So each one begins at a random place in 32 KiB of its
// own.
constexpr std::size_t alignment = 256;  // of allocations, guaranteed by backends
constexpr std::uint64_t places = 128;

std::uint16_t bf16_of(float value) {
  return static_cast<std::uint16_t>((std::bit_cast<std::uint32_t>(value) + 0x8000U) >> 16);
}

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

}  // namespace

void* Tensors::allocate(std::size_t bytes) {
  RandomStream stream(seed_, "place", memory_.size());
  const std::size_t offset = alignment * static_cast<std::size_t>(stream.below(places));
  memory_.push_back(backend_.allocate(bytes + places * alignment));
  return static_cast<std::byte*>(memory_.back().get()) + offset;
}

void Tensors::fill(void* data, std::size_t bytes, std::span<const std::byte> pattern) {
  auto* to = static_cast<std::byte*>(data);
  std::size_t filled = std::min(bytes, pattern.size());
  backend_.upload(to, pattern.data(), filled);
  while (filled < bytes) {
    const std::size_t more = std::min(filled, bytes - filled);
    backend_.copy(to + filled, to, more);
    filled += more;
  }
}

void* Tensors::random(std::int64_t count, kernels::Element element, float low, float high) {
  RandomStream stream(seed_, "tensor", memory_.size());
  std::vector<float> values(static_cast<std::size_t>(std::min(count, pattern_length)));
  for (float& value : values) value = low + (high - low) * static_cast<float>(stream.uniform());
  const std::size_t bytes = static_cast<std::size_t>(count) * kernels::element_bytes(element);
  void* data = allocate(bytes);
  if (element == kernels::Element::fp32) {
    fill(data, bytes, bytes_of(values));
  } else {
    std::vector<std::uint16_t> rounded(values.size());
    std::transform(values.begin(), values.end(), rounded.begin(), bf16_of);
    fill(data, bytes, bytes_of(rounded));
  }
  return data;
}

void* Tensors::elements(std::int64_t count) {
  const float bound = std::sqrt(3.0F);
  return random(count, backend_.element(), -bound, bound);
}

float* Tensors::floats(std::int64_t count) {
  const float bound = std::sqrt(3.0F);
  return static_cast<float*>(random(count, kernels::Element::fp32, -bound, bound));
}

float* Tensors::positive_floats(std::int64_t count) {
  return static_cast<float*>(random(count, kernels::Element::fp32, 0, 1));
}

std::int32_t* Tensors::integers(std::int64_t count, std::int64_t bound) {
  RandomStream stream(seed_, "tensor", memory_.size());
  std::vector<std::int32_t> values(static_cast<std::size_t>(count));
  for (std::int32_t& value : values) {
    value = static_cast<std::int32_t>(stream.below(static_cast<std::uint64_t>(bound)));
  }
  void* data = allocate(values.size() * sizeof(std::int32_t));
  fill(data, values.size() * sizeof(std::int32_t), bytes_of(values));
  return static_cast<std::int32_t*>(data);
}

std::int32_t* Tensors::positions(std::int64_t count) {
  std::vector<std::int32_t> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), 0);
  void* data = allocate(values.size() * sizeof(std::int32_t));
  fill(data, values.size() * sizeof(std::int32_t), bytes_of(values));
  return static_cast<std::int32_t*>(data);
}

float* Tensors::sums(std::int64_t count) {
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(float);
  void* data = allocate(bytes);
  backend_.fill_bytes(data, 0, bytes);
  return static_cast<float*>(data);
}

void* Tensors::results(std::int64_t count) {
  const std::size_t bytes = static_cast<std::size_t>(count) * kernels::element_bytes(backend_.element());
  void* data = allocate(bytes);
  backend_.fill_bytes(data, 0, bytes);
  return data;
}

}  // namespace hdpsim::calib
