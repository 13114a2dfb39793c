#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "kernels/cuda/bf16.h"
#include "kernels/reference/attention.h"
#include "kernels/spec/attention.h"
#include "tests/support/gpu/guarded.h"

/// What the tests of attention kernels on the emulator share: packed tensors with room between the tokens, inputs, and
/// how far an ordinary bf16 implementation is off.
namespace hdpsim::emulator {

/// A packed tensor [rows, width] with room behind each row, NaN wherever nothing was put.
template <class T>
class PackedRows {
 public:
  PackedRows(std::int64_t rows, std::int64_t width, std::int64_t room)
      : rows_(rows), width_(width), stride_(width + room), memory_(static_cast<std::size_t>(rows * (width + room))) {}
  PackedRows(std::span<const double> dense, std::int64_t rows, std::int64_t width, std::int64_t room)
      : PackedRows(rows, width, room) {
    for (std::int64_t i = 0; i < rows; ++i) set_row(i, dense.subspan(static_cast<std::size_t>(i * width)));
  }

  [[nodiscard]] T* data() { return memory_.data(); }
  [[nodiscard]] std::int64_t stride() const { return stride_; }
  void set_row(std::int64_t i, std::span<const double> values) {
    for (std::int64_t j = 0; j < width_; ++j) {
      Guarded<T>::store(data()[i * stride_ + j], values[static_cast<std::size_t>(j)]);
    }
  }
  [[nodiscard]] std::vector<double> dense() const {
    std::vector<double> values;
    for (std::int64_t i = 0; i < rows_; ++i) {
      for (std::int64_t j = 0; j < width_; ++j) values.push_back(at(i, j));
    }
    return values;
  }
  /// Was nothing written between and around the rows, nor in rows that `used` does not name?
  template <class Used>
  [[nodiscard]] bool rest_is_untouched(const Used& used) const {
    for (std::int64_t i = 0; i < rows_; ++i) {
      for (std::int64_t j = used(i) ? width_ : 0; j < stride_; ++j) {
        if (!std::isnan(at(i, j))) return false;
      }
    }
    return memory_.guards_hold();
  }

 private:
  [[nodiscard]] double at(std::int64_t i, std::int64_t j) const {
    return memory_[static_cast<std::size_t>(i * stride_ + j)];
  }
  std::int64_t rows_;
  std::int64_t width_;
  std::int64_t stride_;
  Guarded<T> memory_;
};

/// One launch and its inputs: random numbers that bf16 holds exactly, NaN in rows of no block.
struct AttentionCase {
  kernels::AttentionHeads heads;
  std::vector<kernels::AttentionBlock> blocks;
  std::int64_t query_rows = 0;
  std::int64_t key_rows = 0;
  std::vector<double> q, k, v, d_o;  ///< Dense.

  [[nodiscard]] kernels::reference::AttentionInput input() const { return {heads, blocks, q, k, v}; }
  [[nodiscard]] bool has_query(std::int64_t row) const {
    return std::any_of(blocks.begin(), blocks.end(), [row](const auto& block) {
      return row >= block.query_begin && row < block.query_begin + block.queries;
    });
  }
  [[nodiscard]] bool has_key(std::int64_t row) const {
    return std::any_of(blocks.begin(), blocks.end(), [row](const auto& block) {
      return row >= block.key_begin && row < block.key_begin + block.keys;
    });
  }
};

/// `gap` rows of no block lie before each document.
inline AttentionCase attention_case(const kernels::AttentionHeads& heads, std::vector<kernels::AttentionBlock> blocks,
                                    std::uint32_t seed, std::int64_t gap = 2) {
  AttentionCase made{.heads = heads, .blocks = std::move(blocks), .q = {}, .k = {}, .v = {}, .d_o = {}};
  for (kernels::AttentionBlock& block : made.blocks) {
    block.query_begin = made.query_rows + gap;
    block.key_begin = made.key_rows + gap;
    made.query_rows = block.query_begin + block.queries;
    made.key_rows = block.key_begin + block.keys;
  }
  std::mt19937 random(seed);
  const auto tensor = [&](std::int64_t rows, std::int64_t tensor_heads, auto used) {
    const std::int64_t width = tensor_heads * heads.dim;
    std::vector<double> values = random_values<kernels::cuda::bf16>(random, static_cast<std::size_t>(rows * width), 2);
    for (std::int64_t i = 0; i < rows; ++i) {
      if (!used(i)) std::fill_n(values.begin() + i * width, width, std::numeric_limits<double>::quiet_NaN());
    }
    return values;
  };
  const auto query = [&](std::int64_t row) { return made.has_query(row); };
  const auto key = [&](std::int64_t row) { return made.has_key(row); };
  made.q = tensor(made.query_rows, heads.heads, query);
  made.k = tensor(made.key_rows, heads.kv_heads, key);
  made.v = tensor(made.key_rows, heads.kv_heads, key);
  made.d_o = tensor(made.query_rows, heads.heads, query);
  return made;
}

inline double rounded(double value) {
  return kernels::cuda::to_float(kernels::cuda::to_bf16(static_cast<float>(value)));
}

/// o as an implementation computes it that keeps scores, probabilities and result in bf16.
inline std::vector<double> ordinary_forward(const AttentionCase& given) {
  const auto& heads = given.heads;
  std::vector<double> o(given.q.size(), 0);
  for (const kernels::AttentionBlock& block : given.blocks) {
    for (std::int64_t head = 0; head < heads.heads; ++head) {
      for (std::int64_t i = 0; i < block.queries; ++i) {
        const kernels::KeyRange seen = kernels::seen_keys(block, i);
        const auto q = static_cast<std::size_t>(((block.query_begin + i) * heads.heads + head) * heads.dim);
        const auto kv = [&](std::int64_t j) {
          const std::int64_t kv_head = head / (heads.heads / heads.kv_heads);
          return static_cast<std::size_t>(((block.key_begin + j) * heads.kv_heads + kv_head) * heads.dim);
        };
        const auto dim = static_cast<std::size_t>(heads.dim);
        std::vector<double> p;
        for (std::int64_t j = seen.begin; j < seen.end; ++j) {
          double score = 0;
          for (std::size_t x = 0; x < dim; ++x) score += given.q[q + x] * given.k[kv(j) + x];
          p.push_back(rounded(heads.scale * score));
        }
        const double largest = p.empty() ? 0 : *std::max_element(p.begin(), p.end());
        double sum = 0;
        for (double& score : p) sum += score = std::exp(score - largest);
        for (std::int64_t j = seen.begin; j < seen.end; ++j) {
          const double weight = rounded(p[static_cast<std::size_t>(j - seen.begin)] / sum);
          for (std::size_t x = 0; x < dim; ++x) o[q + x] += weight * given.v[kv(j) + x];
        }
        for (std::size_t x = 0; x < dim; ++x) o[q + x] = rounded(o[q + x]);
      }
    }
  }
  return o;
}

/// Gradients as an implementation computes them that keeps P, dP, dS and results in bf16. lse and delta as of the
/// reference.
inline kernels::reference::AttentionGradients ordinary_backward(const AttentionCase& given, std::span<const double> lse,
                                                                std::span<const double> delta) {
  const auto& heads = given.heads;
  const auto dim = static_cast<std::size_t>(heads.dim);
  kernels::reference::AttentionGradients gradients{std::vector<double>(given.q.size(), 0),
                                                   std::vector<double>(given.k.size(), 0),
                                                   std::vector<double>(given.v.size(), 0)};
  const auto dot = [&](std::span<const double> a, std::size_t a_at, std::span<const double> b, std::size_t b_at) {
    double sum = 0;
    for (std::size_t x = 0; x < dim; ++x) sum += a[a_at + x] * b[b_at + x];
    return sum;
  };
  for (const kernels::AttentionBlock& block : given.blocks) {
    for (std::int64_t head = 0; head < heads.heads; ++head) {
      for (std::int64_t i = 0; i < block.queries; ++i) {
        const std::int64_t row = block.query_begin + i;
        const auto q = static_cast<std::size_t>((row * heads.heads + head) * heads.dim);
        const auto of_row = static_cast<std::size_t>(head * given.query_rows + row);
        const kernels::KeyRange seen = kernels::seen_keys(block, i);
        for (std::int64_t j = seen.begin; j < seen.end; ++j) {
          const std::int64_t kv_head = head / (heads.heads / heads.kv_heads);
          const auto kv = static_cast<std::size_t>(((block.key_begin + j) * heads.kv_heads + kv_head) * heads.dim);
          const double p = rounded(std::exp(heads.scale * dot(given.q, q, given.k, kv) - lse[of_row]));
          const double d_s = rounded(p * (rounded(dot(given.d_o, q, given.v, kv)) - delta[of_row]));
          for (std::size_t x = 0; x < dim; ++x) {
            gradients.d_v[kv + x] += p * given.d_o[q + x];
            gradients.d_q[q + x] += heads.scale * d_s * given.k[kv + x];
            gradients.d_k[kv + x] += heads.scale * d_s * given.q[q + x];
          }
        }
      }
    }
  }
  for (auto* tensor : {&gradients.d_q, &gradients.d_k, &gradients.d_v}) {
    for (double& value : *tensor) value = rounded(value);
  }
  return gradients;
}

/// Values of the rows that `used` names, of a dense tensor.
template <class Used>
std::vector<double> rows_of(std::span<const double> dense, std::int64_t width, const Used& used) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(dense.size()) / width; ++i) {
    if (used(i)) values.insert(values.end(), dense.begin() + i * width, dense.begin() + (i + 1) * width);
  }
  return values;
}

}  // namespace hdpsim::emulator
