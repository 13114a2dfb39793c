#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "kernels/cuda/bf16.h"
#include "kernels/spec/backend.h"
#include "tests/gpu/device_tensor.h"
#include "tests/unit/kernels/cuda_emulated/attention_case.h"

namespace hdpsim::kernels {

/// The tensors of one case in device memory, outputs NaN, and the launches over them.
class AttentionOnDevice {
 public:
  /// sum_o: o is fp32 and is accumulated into, from no keys at all; else it is bf16 and is written.
  AttentionOnDevice(Backend& backend, const emulator::AttentionCase& given, bool sum_o = false)
      : q(backend, given.q, query_width(given), 16),
        k(backend, given.k, key_width(given), 8),
        v(backend, given.v, key_width(given), 24),
        d_o(backend, given.d_o, query_width(given), 8),
        o(backend, given.query_rows, query_width(given), 32),
        o_sum(backend, zeros(given, given.query_rows, query_width(given), true), query_width(given), 32),
        lse(backend, sum_o ? no_keys(given) : nothing(given), given.query_rows),
        delta(backend, given.heads.heads, given.query_rows),
        d_q(backend, zeros(given, given.query_rows, query_width(given), true), query_width(given), 4),
        d_k(backend, zeros(given, given.key_rows, key_width(given), false), key_width(given), 8),
        d_v(backend, zeros(given, given.key_rows, key_width(given), false), key_width(given), 12),
        backend_(backend),
        given_(given),
        sum_o_(sum_o) {}

  void forward() { forward(given_.blocks); }
  void forward(std::span<const AttentionBlock> blocks) {
    backend_.run(AttentionForward{
        .heads = given_.heads,
        .blocks = blocks,
        .q = {q.data(), q.stride()},
        .k = {k.data(), k.stride()},
        .v = {v.data(), v.stride()},
        .o = {sum_o_ ? static_cast<void*>(o_sum.data()) : o.data(), sum_o_ ? o_sum.stride() : o.stride()},
        .lse = lse.data(),
        .lse_stride = given_.query_rows,
        .accumulate = sum_o_});
  }
  /// Behind forward(), with the o that it wrote.
  void backward(bool deterministic = false) { backward(given_.blocks, deterministic); }
  void backward(std::span<const AttentionBlock> blocks, bool deterministic) {
    backend_.run(AttentionDelta{.heads = given_.heads,
                                .rows = given_.query_rows,
                                .o = {o.data(), o.stride()},
                                .d_o = {d_o.data(), d_o.stride()},
                                .delta = delta.data()});
    backend_.run(AttentionBackward{.heads = given_.heads,
                                   .blocks = blocks,
                                   .q = {q.data(), q.stride()},
                                   .k = {k.data(), k.stride()},
                                   .v = {v.data(), v.stride()},
                                   .d_o = {d_o.data(), d_o.stride()},
                                   .lse = lse.data(),
                                   .delta = delta.data(),
                                   .lse_stride = given_.query_rows,
                                   .d_q = {d_q.data(), d_q.stride()},
                                   .d_k = {d_k.data(), d_k.stride()},
                                   .d_v = {d_v.data(), d_v.stride()},
                                   .deterministic = deterministic});
  }

  /// Of [heads, query rows], those of rows that some block has.
  [[nodiscard]] std::vector<double> used_lse(std::span<const double> all) const {
    std::vector<double> values;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (given_.has_query(static_cast<std::int64_t>(i) % given_.query_rows)) values.push_back(all[i]);
    }
    return values;
  }
  [[nodiscard]] std::vector<double> query_rows(std::span<const double> dense) const {
    return emulator::rows_of(dense, query_width(given_), [&](std::int64_t row) { return given_.has_query(row); });
  }
  [[nodiscard]] std::vector<double> key_rows(std::span<const double> dense) const {
    return emulator::rows_of(dense, key_width(given_), [&](std::int64_t row) { return given_.has_key(row); });
  }
  /// Was nothing written but rows of blocks?
  [[nodiscard]] bool kept_to_its_rows() {
    const auto query = [&](std::int64_t row) { return given_.has_query(row); };
    const auto key = [&](std::int64_t row) { return given_.has_key(row); };
    const std::vector<double> all_lse = lse.dense();
    for (std::size_t i = 0; i < all_lse.size(); ++i) {
      if (!query(static_cast<std::int64_t>(i) % given_.query_rows) && !std::isnan(all_lse[i])) return false;
    }
    return (sum_o_ ? o_sum.rest_is_untouched(query) : o.rest_is_untouched(query)) && lse.rest_is_untouched() &&
           d_q.rest_is_untouched(query) && d_k.rest_is_untouched(key) && d_v.rest_is_untouched(key);
  }

 private:
  static std::int64_t query_width(const emulator::AttentionCase& given) { return given.heads.heads * given.heads.dim; }
  static std::int64_t key_width(const emulator::AttentionCase& given) { return given.heads.kv_heads * given.heads.dim; }
  /// 0 in rows of blocks, NaN elsewhere.
  static std::vector<double> zeros(const emulator::AttentionCase& given, std::int64_t rows, std::int64_t width,
                                   bool queries) {
    std::vector<double> values(static_cast<std::size_t>(rows * width), std::numeric_limits<double>::quiet_NaN());
    for (std::int64_t i = 0; i < rows; ++i) {
      if (queries ? given.has_query(i) : given.has_key(i)) std::fill_n(values.begin() + i * width, width, 0.0);
    }
    return values;
  }
  static std::vector<double> nothing(const emulator::AttentionCase& given) {
    return std::vector<double>(static_cast<std::size_t>(given.heads.heads * given.query_rows),
                               std::numeric_limits<double>::quiet_NaN());
  }
  static std::vector<double> no_keys(const emulator::AttentionCase& given) {
    std::vector<double> values = nothing(given);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (given.has_query(static_cast<std::int64_t>(i) % given.query_rows)) {
        values[i] = -std::numeric_limits<double>::infinity();
      }
    }
    return values;
  }

 public:
  DeviceTensor<cuda::bf16> q, k, v, d_o, o;
  DeviceTensor<float> o_sum, lse, delta, d_q, d_k, d_v;

 private:
  Backend& backend_;
  const emulator::AttentionCase& given_;
  bool sum_o_;
};

}  // namespace hdpsim::kernels
