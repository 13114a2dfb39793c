#include "kernels/reference/reference_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hdpsim::kernels::reference {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Index of the first element of head `head` of row `row`, and of its LSE and delta.
struct Layout {
  std::int64_t heads;
  std::int64_t dim;
  [[nodiscard]] std::size_t at(std::int64_t row, std::int64_t head) const {
    return static_cast<std::size_t>((row * heads + head) * dim);
  }
};

std::size_t statistic(std::int64_t rows, std::int64_t head, std::int64_t row) {
  return static_cast<std::size_t>(head * rows + row);
}

double dot(std::span<const double> a, std::size_t a_at, std::span<const double> b, std::size_t b_at, std::int64_t dim) {
  double sum = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(dim); ++i) sum += a[a_at + i] * b[b_at + i];
  return sum;
}

/// y += factor x over one head.
void add_scaled(std::span<double> y, std::size_t y_at, double factor, std::span<const double> x, std::size_t x_at,
                std::int64_t dim) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(dim); ++i) y[y_at + i] += factor * x[x_at + i];
}

/// Calls visit(head, query row, keys [begin, end) that the row sees) for every row of every block.
template <class Visit>
void for_each_row(const AttentionInput& input, const Visit& visit) {
  for (const AttentionBlock& block : input.blocks) {
    for (std::int64_t head = 0; head < input.heads.heads; ++head) {
      for (std::int64_t i = 0; i < block.queries; ++i) {
        const KeyRange seen = seen_keys(block, i);
        visit(head, block.query_begin + i, block.key_begin + seen.begin, block.key_begin + seen.end);
      }
    }
  }
}

}  // namespace

AttentionResult attention_forward(const AttentionInput& input) {
  const AttentionHeads& heads = input.heads;
  const std::int64_t group = heads.heads / heads.kv_heads;
  const Layout queries{heads.heads, heads.dim};
  const Layout keys{heads.kv_heads, heads.dim};
  const Layout outputs{heads.heads, heads.value_width()};
  const Layout values{heads.kv_heads, heads.value_width()};
  AttentionResult result;
  result.o.assign(static_cast<std::size_t>(input.query_rows() * outputs.heads * outputs.dim), 0);
  result.lse.assign(static_cast<std::size_t>(heads.heads * input.query_rows()), -infinity);

  for_each_row(input, [&](std::int64_t head, std::int64_t row, std::int64_t begin, std::int64_t end) {
    if (begin == end && input.sinks.empty()) return;
    std::vector<double> scores;
    for (std::int64_t key = begin; key < end; ++key) {
      scores.push_back(heads.scale *
                       dot(input.q, queries.at(row, head), input.k, keys.at(key, head / group), heads.dim));
    }
    if (!input.sinks.empty()) scores.push_back(input.sinks[static_cast<std::size_t>(head)]);
    const double largest = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (const double score : scores) sum += std::exp(score - largest);
    const double lse = largest + std::log(sum);
    result.lse[statistic(input.query_rows(), head, row)] = lse;
    for (std::int64_t key = begin; key < end; ++key) {
      const double p = std::exp(scores[static_cast<std::size_t>(key - begin)] - lse);
      add_scaled(result.o, outputs.at(row, head), p, input.v, values.at(key, head / group), values.dim);
    }
  });
  return result;
}

std::vector<double> attention_delta(const AttentionHeads& heads, std::span<const double> o,
                                    std::span<const double> d_o) {
  const Layout layout{heads.heads, heads.value_width()};
  const std::int64_t rows = static_cast<std::int64_t>(o.size()) / (layout.heads * layout.dim);
  std::vector<double> delta(static_cast<std::size_t>(heads.heads * rows));
  for (std::int64_t head = 0; head < heads.heads; ++head) {
    for (std::int64_t row = 0; row < rows; ++row) {
      delta[statistic(rows, head, row)] = dot(o, layout.at(row, head), d_o, layout.at(row, head), layout.dim);
    }
  }
  return delta;
}

AttentionGradients attention_backward(const AttentionInput& input, std::span<const double> d_o,
                                      std::span<const double> lse, std::span<const double> delta) {
  const AttentionHeads& heads = input.heads;
  const std::int64_t group = heads.heads / heads.kv_heads;
  const Layout queries{heads.heads, heads.dim};
  const Layout keys{heads.kv_heads, heads.dim};
  const Layout outputs{heads.heads, heads.value_width()};
  const Layout values{heads.kv_heads, heads.value_width()};
  AttentionGradients gradients;
  gradients.d_q.assign(input.q.size(), 0);
  gradients.d_k.assign(input.k.size(), 0);
  gradients.d_v.assign(input.v.size(), 0);
  gradients.d_sinks.assign(input.sinks.size(), 0);

  for_each_row(input, [&](std::int64_t head, std::int64_t row, std::int64_t begin, std::int64_t end) {
    const std::size_t q = queries.at(row, head);
    const std::size_t o = outputs.at(row, head);
    const std::size_t of_row = statistic(input.query_rows(), head, row);
    if (!input.sinks.empty()) {
      const auto of_head = static_cast<std::size_t>(head);
      gradients.d_sinks[of_head] -= std::exp(input.sinks[of_head] - lse[of_row]) * delta[of_row];
    }
    for (std::int64_t key = begin; key < end; ++key) {
      const std::size_t k = keys.at(key, head / group);
      const std::size_t v = values.at(key, head / group);
      const double p = std::exp(heads.scale * dot(input.q, q, input.k, k, heads.dim) - lse[of_row]);
      const double d_s = p * (dot(d_o, o, input.v, v, values.dim) - delta[of_row]);
      add_scaled(gradients.d_v, v, p, d_o, o, values.dim);
      add_scaled(gradients.d_q, q, heads.scale * d_s, input.k, k, heads.dim);
      add_scaled(gradients.d_k, k, heads.scale * d_s, input.q, q, heads.dim);
    }
  });
  return gradients;
}

void merge(const AttentionHeads& heads, AttentionResult& into, const AttentionResult& other) {
  const Layout layout{heads.heads, heads.value_width()};
  const std::int64_t rows = static_cast<std::int64_t>(into.lse.size()) / heads.heads;
  for (std::int64_t head = 0; head < heads.heads; ++head) {
    for (std::int64_t row = 0; row < rows; ++row) {
      double& lse = into.lse[statistic(rows, head, row)];
      const double other_lse = other.lse[statistic(rows, head, row)];
      const double largest = std::max(lse, other_lse);
      if (largest == -infinity) continue;
      const double merged = largest + std::log(std::exp(lse - largest) + std::exp(other_lse - largest));
      for (std::size_t i = layout.at(row, head); i < layout.at(row, head) + static_cast<std::size_t>(layout.dim); ++i) {
        into.o[i] = into.o[i] * std::exp(lse - merged) + other.o[i] * std::exp(other_lse - merged);
      }
      lse = merged;
    }
  }
}

}  // namespace hdpsim::kernels::reference
