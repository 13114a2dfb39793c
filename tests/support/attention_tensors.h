#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/cuda/bf16.h"
#include "kernels/spec/backend.h"
#include "tests/support/kernels.h"

/// What benchmarks of kernels share: device memory, and attention over dense tensors.
namespace hdpsim::kernels::bench {

/// Device memory full of random elements of a normal distribution: zeros would make tensor cores faster than they are.
[[nodiscard]] inline DeviceMemory random_elements(Backend& backend, std::int64_t count, std::uint64_t seed = 1,
                                                  double deviation = 1) {
  const std::int64_t pattern_count = std::min(count, std::int64_t{1} << 20);
  const std::size_t size = element_bytes(backend.element());
  const std::vector<float> values = test::random_tensor(seed, static_cast<std::size_t>(pattern_count), deviation);
  std::vector<cuda::bf16> narrow;
  for (const float value : values) narrow.push_back(cuda::to_bf16(value));
  DeviceMemory memory = backend.allocate(static_cast<std::size_t>(count) * size);
  auto* const begin = static_cast<std::byte*>(memory.get());
  const void* const pattern =
      backend.element() == Element::fp32 ? static_cast<const void*>(values.data()) : narrow.data();
  backend.upload(begin, pattern, static_cast<std::size_t>(pattern_count) * size);
  for (std::int64_t filled = pattern_count; filled < count;) {
    const std::int64_t more = std::min(filled, count - filled);
    backend.copy(begin + static_cast<std::size_t>(filled) * size, begin, static_cast<std::size_t>(more) * size);
    filled += more;
  }
  return memory;
}
/// Full of zeros.
[[nodiscard]] inline DeviceMemory zeros(Backend& backend, std::size_t bytes) {
  DeviceMemory memory = backend.allocate(bytes);
  backend.fill_bytes(memory.get(), 0, bytes);
  return memory;
}

[[nodiscard]] inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

[[nodiscard]] inline AttentionHeads heads_of(std::int64_t heads, std::int64_t kv_heads, std::int64_t dim) {
  return {.heads = heads, .kv_heads = kv_heads, .dim = dim, .scale = 1 / std::sqrt(static_cast<float>(dim))};
}

/// Random dense tensors for some blocks, and their launches.
class AttentionTensors {
 public:
  AttentionTensors(Backend& backend, const AttentionHeads& heads, std::vector<AttentionBlock> blocks)
      : backend_(backend), heads_(heads), blocks_(std::move(blocks)) {
    for (const AttentionBlock& block : blocks_) {
      queries_ = std::max(queries_, block.query_begin + block.queries);
      keys_ = std::max(keys_, block.key_begin + block.keys);
    }
    q_ = random_elements(backend, queries_ * query_width(), 1);
    k_ = random_elements(backend, keys_ * key_width(), 2);
    v_ = random_elements(backend, keys_ * key_width(), 3);
    d_o_ = random_elements(backend, queries_ * query_width(), 4);
    o_ = zeros(backend, fp32(queries_ * query_width()));
    lse_ = zeros(backend, fp32(queries_ * heads.heads));
    delta_ = zeros(backend, fp32(queries_ * heads.heads));
    d_q_ = zeros(backend, fp32(queries_ * query_width()));
    d_k_ = zeros(backend, fp32(keys_ * key_width()));
    d_v_ = zeros(backend, fp32(keys_ * key_width()));
  }

  void forward() { forward(false); }
  void forward_accumulating() { forward(true); }
  /// After forward(), with delta, as a whole backward pass needs it.
  void backward() {
    backend_.run(AttentionDelta{.heads = heads_,
                                .rows = queries_,
                                .o = {o_.get(), query_width()},
                                .d_o = {d_o_.get(), query_width()},
                                .delta = static_cast<float*>(delta_.get())});
    backend_.run(AttentionBackward{.heads = heads_,
                                   .blocks = blocks_,
                                   .q = {q_.get(), query_width()},
                                   .k = {k_.get(), key_width()},
                                   .v = {v_.get(), key_width()},
                                   .d_o = {d_o_.get(), query_width()},
                                   .lse = static_cast<const float*>(lse_.get()),
                                   .delta = static_cast<const float*>(delta_.get()),
                                   .lse_stride = queries_,
                                   .d_q = {static_cast<float*>(d_q_.get()), query_width()},
                                   .d_k = {static_cast<float*>(d_k_.get()), key_width()},
                                   .d_v = {static_cast<float*>(d_v_.get()), key_width()}});
  }

  [[nodiscard]] std::int64_t area() const { return mask_area(blocks_); }
  [[nodiscard]] double forward_flops() const {
    return 4.0 * static_cast<double>(heads_.heads * heads_.dim) * static_cast<double>(area());
  }
  [[nodiscard]] double backward_flops() const { return 2.5 * forward_flops(); }

 private:
  void forward(bool accumulate) {
    backend_.run(AttentionForward{.heads = heads_,
                                  .blocks = blocks_,
                                  .q = {q_.get(), query_width()},
                                  .k = {k_.get(), key_width()},
                                  .v = {v_.get(), key_width()},
                                  .o = {o_.get(), query_width()},
                                  .lse = static_cast<float*>(lse_.get()),
                                  .lse_stride = queries_,
                                  .accumulate = accumulate});
  }
  [[nodiscard]] std::int64_t query_width() const { return heads_.heads * heads_.dim; }
  [[nodiscard]] std::int64_t key_width() const { return heads_.kv_heads * heads_.dim; }
  static std::size_t fp32(std::int64_t count) { return static_cast<std::size_t>(count) * sizeof(float); }

  Backend& backend_;
  AttentionHeads heads_;
  std::vector<AttentionBlock> blocks_;
  std::int64_t queries_ = 0;
  std::int64_t keys_ = 0;
  DeviceMemory q_, k_, v_, d_o_, o_, lse_, delta_, d_q_, d_k_, d_v_;
};

}  // namespace hdpsim::kernels::bench
