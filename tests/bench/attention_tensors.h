#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/spec/backend.h"
#include "tests/support/kernels.h"

/// What benchmarks of attention on a CPU share.
namespace hdpsim::bench {

using namespace hdpsim::kernels;

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

/// Random tensors for attention over packed blocks, one head after another.
class Attention {
 public:
  Attention(std::int64_t heads, std::int64_t kv_heads, std::int64_t dim, std::vector<AttentionBlock> blocks)
      : heads_{heads, kv_heads, dim, static_cast<float>(1 / std::sqrt(static_cast<double>(dim)))},
        blocks_(std::move(blocks)),
        rows_(blocks_.back().query_begin + blocks_.back().queries) {
    const auto q_size = static_cast<std::size_t>(rows_ * heads * dim);
    const auto k_size = static_cast<std::size_t>(rows_ * kv_heads * dim);
    q_ = test::random_tensor(1, q_size);
    k_ = test::random_tensor(2, k_size);
    v_ = test::random_tensor(3, k_size);
    d_o_ = test::random_tensor(4, q_size);
    o_.resize(q_size);
    d_q_.resize(q_size);
    d_k_.resize(k_size);
    d_v_.resize(k_size);
    lse_.resize(static_cast<std::size_t>(rows_ * heads));
    delta_.resize(lse_.size());
  }

  void forward(Backend& backend) {
    backend.run(AttentionForward{.heads = heads_,
                                 .blocks = blocks_,
                                 .q = {q_.data(), q_row()},
                                 .k = {k_.data(), k_row()},
                                 .v = {v_.data(), k_row()},
                                 .o = {o_.data(), q_row()},
                                 .lse = lse_.data(),
                                 .lse_stride = rows_});
  }
  /// After a forward pass.
  void backward(Backend& backend) {
    backend.run(AttentionDelta{.heads = heads_,
                               .rows = rows_,
                               .o = {o_.data(), q_row()},
                               .d_o = {d_o_.data(), q_row()},
                               .delta = delta_.data()});
    backend.run(AttentionBackward{.heads = heads_,
                                  .blocks = blocks_,
                                  .q = {q_.data(), q_row()},
                                  .k = {k_.data(), k_row()},
                                  .v = {v_.data(), k_row()},
                                  .d_o = {d_o_.data(), q_row()},
                                  .lse = lse_.data(),
                                  .delta = delta_.data(),
                                  .lse_stride = rows_,
                                  .d_q = {d_q_.data(), q_row()},
                                  .d_k = {d_k_.data(), k_row()},
                                  .d_v = {d_v_.data(), k_row()}});
  }
  /// Of the forward pass; backward has 2.5 times as many.
  [[nodiscard]] double operations() const {
    return 4.0 * static_cast<double>(heads_.heads * heads_.dim) * static_cast<double>(mask_area(blocks_));
  }

 private:
  [[nodiscard]] std::int64_t q_row() const { return heads_.heads * heads_.dim; }
  [[nodiscard]] std::int64_t k_row() const { return heads_.kv_heads * heads_.dim; }

  AttentionHeads heads_;
  std::vector<AttentionBlock> blocks_;
  std::int64_t rows_;
  std::vector<float> q_, k_, v_, d_o_, o_, d_q_, d_k_, d_v_, lse_, delta_;
};

}  // namespace hdpsim::bench
