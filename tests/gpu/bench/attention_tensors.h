#pragma once

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "tests/gpu/bench/bench.h"

namespace hdpsim::kernels::bench {

/// The heads of the published tables that attention kernels are compared by.
[[nodiscard]] inline AttentionHeads heads_64_8(std::int64_t dim) {
  return {.heads = 64, .kv_heads = 8, .dim = dim, .scale = 1 / std::sqrt(static_cast<float>(dim))};
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
    q_ = random_bf16(backend, queries_ * query_width(), 1);
    k_ = random_bf16(backend, keys_ * key_width(), 2);
    v_ = random_bf16(backend, keys_ * key_width(), 3);
    d_o_ = random_bf16(backend, queries_ * query_width(), 4);
    o_ = zeros(backend, fp32(queries_ * query_width()));
    lse_ = zeros(backend, fp32(queries_ * heads.heads));
    delta_ = zeros(backend, fp32(queries_ * heads.heads));
    d_q_ = zeros(backend, fp32(queries_ * query_width()));
    d_k_ = zeros(backend, fp32(keys_ * key_width()));
    d_v_ = zeros(backend, fp32(keys_ * key_width()));
    forward();  // backward needs what it leaves
  }

  void forward() { forward(false); }
  void forward_accumulating() { forward(true); }
  /// With delta, as a whole backward pass needs it.
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
