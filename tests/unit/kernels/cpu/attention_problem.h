#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/reference/attention.h"
#include "kernels/spec/backend.h"
#include "tests/support/kernels.h"

namespace hdpsim::test {

struct BlockShape {
  std::int64_t queries;
  std::int64_t keys;
  kernels::Mask mask = kernels::Mask::causal;
  std::int64_t window = 0;
  std::int64_t lead = 0;
};

/// Random tensors for packed blocks, with rows of no block before, between and behind them.
struct AttentionProblem {
  kernels::AttentionHeads heads;
  std::vector<kernels::AttentionBlock> blocks;
  std::int64_t query_rows = 3;
  std::int64_t key_rows = 2;
  std::vector<float> q, k, v, d_o;
  std::vector<float> sinks;  ///< [heads]; empty: none.

  AttentionProblem(std::uint64_t seed, const kernels::AttentionHeads& of_heads, const std::vector<BlockShape>& shapes)
      : heads(of_heads) {
    for (const BlockShape& shape : shapes) {
      blocks.push_back({query_rows, shape.queries, key_rows, shape.keys, shape.mask, shape.window, shape.lead});
      query_rows += shape.queries + 1;
      key_rows += shape.keys + 2;
    }
    q = random_tensor(seed, static_cast<std::size_t>(query_rows * query_width()));
    k = random_tensor(seed + 1, static_cast<std::size_t>(key_rows * key_width()));
    v = random_tensor(seed + 2, static_cast<std::size_t>(key_rows * value_width()));
    d_o = random_tensor(seed + 3, static_cast<std::size_t>(query_rows * output_width()));
  }

  [[nodiscard]] std::int64_t query_width() const { return heads.heads * heads.dim; }
  [[nodiscard]] std::int64_t key_width() const { return heads.kv_heads * heads.dim; }
  [[nodiscard]] std::int64_t value_width() const { return heads.kv_heads * heads.value_width(); }
  [[nodiscard]] std::int64_t output_width() const { return heads.heads * heads.value_width(); }
  [[nodiscard]] bool has_query(std::int64_t row) const {
    for (const kernels::AttentionBlock& block : blocks) {
      if (row >= block.query_begin && row < block.query_begin + block.queries) return true;
    }
    return false;
  }
  [[nodiscard]] bool has_key(std::int64_t row) const {
    for (const kernels::AttentionBlock& block : blocks) {
      if (row >= block.key_begin && row < block.key_begin + block.keys) return true;
    }
    return false;
  }
};

/// The same in fp64.
struct AttentionTruth {
  kernels::reference::AttentionResult forward;
  kernels::reference::AttentionGradients gradients;

  explicit AttentionTruth(const AttentionProblem& problem) {
    const auto q = to_double(problem.q);
    const auto k = to_double(problem.k);
    const auto v = to_double(problem.v);
    const auto d_o = to_double(problem.d_o);
    const auto sinks = to_double(problem.sinks);
    const kernels::reference::AttentionInput input{problem.heads, problem.blocks, q, k, v, sinks};
    forward = kernels::reference::attention_forward(input);
    const auto delta = kernels::reference::attention_delta(problem.heads, forward.o, d_o);
    gradients = kernels::reference::attention_backward(input, d_o, forward.lse, delta);
  }
};

/// What a backend makes of a problem. All rows of no block are poison, in inputs and outputs.
class AttentionRun {
 public:
  explicit AttentionRun(const AttentionProblem& problem)
      : q(problem.query_rows, problem.query_width()),
        k(problem.key_rows, problem.key_width()),
        v(problem.key_rows, problem.value_width()),
        o(problem.query_rows, problem.output_width()),
        d_o(problem.query_rows, problem.output_width()),
        d_q(problem.query_rows, problem.query_width()),
        d_k(problem.key_rows, problem.key_width()),
        d_v(problem.key_rows, problem.value_width()),
        lse(problem.heads.heads, problem.query_rows, 0),
        delta(problem.heads.heads, problem.query_rows, 0),
        d_sinks(problem.sinks.size(), 0),
        problem_(problem) {
    for (const kernels::AttentionBlock& block : problem.blocks) {
      q.set_rows(block.query_begin, block.queries, problem.q);
      d_o.set_rows(block.query_begin, block.queries, problem.d_o);
      d_q.fill_rows(block.query_begin, block.queries, 0);
      k.set_rows(block.key_begin, block.keys, problem.k);
      v.set_rows(block.key_begin, block.keys, problem.v);
      d_k.fill_rows(block.key_begin, block.keys, 0);
      d_v.fill_rows(block.key_begin, block.keys, 0);
    }
  }

  void forward(kernels::Backend& backend, bool accumulate = false) { forward(backend, problem_.blocks, accumulate); }
  void forward(kernels::Backend& backend, std::span<const kernels::AttentionBlock> blocks, bool accumulate,
               bool with_sinks = true) {
    backend.run(kernels::AttentionForward{.heads = problem_.heads,
                                          .blocks = blocks,
                                          .q = {q.data(), q.stride()},
                                          .k = {k.data(), k.stride()},
                                          .v = {v.data(), v.stride()},
                                          .o = {o.data(), o.stride()},
                                          .lse = lse.data(),
                                          .lse_stride = lse.stride(),
                                          .accumulate = accumulate,
                                          .sinks = sinks_of(with_sinks)});
  }
  void backward(kernels::Backend& backend) { backward(backend, problem_.blocks); }
  void backward(kernels::Backend& backend, std::span<const kernels::AttentionBlock> blocks, bool with_sinks = true) {
    backend.run(kernels::AttentionDelta{.heads = problem_.heads,
                                        .rows = problem_.query_rows,
                                        .o = {o.data(), o.stride()},
                                        .d_o = {d_o.data(), d_o.stride()},
                                        .delta = delta.data()});
    backend.run(kernels::AttentionBackward{.heads = problem_.heads,
                                           .blocks = blocks,
                                           .q = {q.data(), q.stride()},
                                           .k = {k.data(), k.stride()},
                                           .v = {v.data(), v.stride()},
                                           .d_o = {d_o.data(), d_o.stride()},
                                           .lse = lse.data(),
                                           .delta = delta.data(),
                                           .lse_stride = lse.stride(),
                                           .d_q = {d_q.data(), d_q.stride()},
                                           .d_k = {d_k.data(), d_k.stride()},
                                           .d_v = {d_v.data(), d_v.stride()},
                                           .deterministic = true,
                                           .sinks = sinks_of(with_sinks),
                                           .d_sinks = sinks_of(with_sinks) != nullptr ? d_sinks.data() : nullptr});
  }

  /// Nothing was written but the rows of blocks.
  [[nodiscard]] bool kept_to_its_rows() const {
    const auto is_query = [this](std::int64_t row) { return problem_.has_query(row); };
    const auto is_key = [this](std::int64_t row) { return problem_.has_key(row); };
    for (std::int64_t head = 0; head < problem_.heads.heads; ++head) {
      for (std::int64_t row = 0; row < problem_.query_rows; ++row) {
        if (!problem_.has_query(row) && !std::isnan(lse.row(head)[static_cast<std::size_t>(row)])) return false;
      }
    }
    return o.untouched_except(is_query) && d_q.untouched_except(is_query) && d_k.untouched_except(is_key) &&
           d_v.untouched_except(is_key) && lse.untouched_except([](std::int64_t) { return true; });
  }

  /// [heads, queries] of one block.
  [[nodiscard]] std::vector<float> lse_of(const kernels::AttentionBlock& block) const {
    std::vector<float> result;
    for (std::int64_t head = 0; head < problem_.heads.heads; ++head) {
      const auto row =
          lse.row(head).subspan(static_cast<std::size_t>(block.query_begin), static_cast<std::size_t>(block.queries));
      result.insert(result.end(), row.begin(), row.end());
    }
    return result;
  }

  GuardedRows q, k, v, o, d_o, d_q, d_k, d_v;
  GuardedRows lse, delta;      ///< [heads, query rows]
  std::vector<float> d_sinks;  ///< [heads]; empty where the problem has none.

 private:
  [[nodiscard]] const float* sinks_of(bool with_sinks) const {
    return with_sinks && !problem_.sinks.empty() ? problem_.sinks.data() : nullptr;
  }

  const AttentionProblem& problem_;
};

/// Rows [begin, begin + count) of a dense tensor.
template <class T>
std::vector<T> rows_of(const std::vector<T>& dense, std::int64_t begin, std::int64_t count, std::int64_t width) {
  return {dense.begin() + begin * width, dense.begin() + (begin + count) * width};
}

/// LSE of one block out of [heads, query rows].
inline std::vector<double> lse_of(const AttentionTruth& truth, const AttentionProblem& problem,
                                  const kernels::AttentionBlock& block) {
  std::vector<double> result;
  for (std::int64_t head = 0; head < problem.heads.heads; ++head) {
    const auto begin = truth.forward.lse.begin() + head * problem.query_rows + block.query_begin;
    result.insert(result.end(), begin, begin + block.queries);
  }
  return result;
}

}  // namespace hdpsim::test
