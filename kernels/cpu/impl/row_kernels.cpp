#include "kernels/cpu/impl/row_kernels.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

namespace hdpsim::kernels::cpu {
namespace {

std::size_t size(std::int64_t count) {
  return static_cast<std::size_t>(count);
}

const float* floats(const void* data) {
  return static_cast<const float*>(data);
}

float* floats(void* data) {
  return static_cast<float*>(data);
}

float sigmoid(float x) {
  return 1 / (1 + std::exp(-x));
}

// Visits every copy of every token: its number among all, the token, and its row.
template <class Visit>
void for_each_copy(const CopiesOfTokens& of, Visit visit) {
  for (std::int64_t copy = 0; copy < of.tokens * of.chosen; ++copy) visit(copy, copy / of.chosen, of.rows[copy]);
}

float weight_of(const CopiesOfTokens& of, std::int64_t copy) {
  return of.weights == nullptr ? 1.0F : of.weights[copy];
}

// The softmax of the scores of some experts, the first of which is the largest.
void softmax(const float* scores, std::span<const std::int32_t> ids, float* weights) {
  float sum = 0;
  for (std::size_t j = 0; j < ids.size(); ++j) {
    weights[j] = std::exp(scores[ids[j]] - scores[ids[0]]);
    sum += weights[j];
  }
  for (std::size_t j = 0; j < ids.size(); ++j) weights[j] /= sum;
}

}  // namespace

void copy_columns(const CopyColumns& op) {
  for (std::int64_t row = 0; row < op.rows; ++row) {
    for (std::int64_t part = 0; part < op.parts; ++part) {
      const float* const from = floats(op.from) + row * op.from_stride + part * op.from_part;
      float* const to = floats(op.to) + row * op.to_stride + part * op.to_part;
      for (std::int64_t i = 0; i < op.width; ++i) to[i] = op.add ? to[i] + from[i] : from[i];
    }
  }
}

void silu(const SiluForward& op) {
  for (std::int64_t i = 0; i < op.count; ++i) floats(op.y)[i] = floats(op.x)[i] * sigmoid(floats(op.x)[i]);
}

void silu_back(const SiluBackward& op) {
  for (std::int64_t i = 0; i < op.count; ++i) {
    const float x = floats(op.x)[i];
    const float s = sigmoid(x);
    floats(op.d_x)[i] = s * (1 + x * (1 - s)) * op.d_y[i];
  }
}

void gate(const GateForward& op) {
  for (std::int64_t i = 0; i < op.count; ++i) floats(op.y)[i] = sigmoid(floats(op.gate)[i]) * floats(op.x)[i];
}

void gate_back(const GateBackward& op) {
  for (std::int64_t i = 0; i < op.count; ++i) {
    const float s = sigmoid(floats(op.gate)[i]);
    const float d_y = floats(op.d_y)[i];
    floats(op.d_gate)[i] = s * (1 - s) * floats(op.x)[i] * d_y;
    floats(op.d_x)[i] = s * d_y;
  }
}

void route(const RouteForward& op) {
  std::vector<std::int32_t> order(size(op.experts));
  for (std::int64_t token = 0; token < op.tokens; ++token) {
    const float* const scores = floats(op.scores) + token * op.experts;
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + op.chosen, order.end(), [&](std::int32_t a, std::int32_t b) {
      return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
    });
    std::copy_n(order.begin(), op.chosen, op.ids + token * op.chosen);
    softmax(scores, std::span(order).first(size(op.chosen)), op.weights + token * op.chosen);
  }
}

void route_back(const RouteBackward& op) {
  std::fill_n(floats(op.d_scores), op.tokens * op.experts, 0.0F);
  for (std::int64_t token = 0; token < op.tokens; ++token) {
    const std::int64_t first = token * op.chosen;
    float mean = 0;
    for (std::int64_t j = first; j < first + op.chosen; ++j) mean += op.weights[j] * op.d_weights[j];
    for (std::int64_t j = first; j < first + op.chosen; ++j) {
      floats(op.d_scores)[token * op.experts + op.ids[j]] = op.weights[j] * (op.d_weights[j] - mean);
    }
  }
}

void sort_copies(const SortCopies& op) {
  const std::int64_t copies = op.tokens * op.chosen;
  std::fill_n(op.begins, op.experts + 1, 0);
  for (std::int64_t copy = 0; copy < copies; ++copy) ++op.begins[op.ids[copy] + 1];
  std::partial_sum(op.begins, op.begins + op.experts + 1, op.begins);
  std::vector<std::int32_t> next(op.begins, op.begins + op.experts);
  for (std::int64_t copy = 0; copy < copies; ++copy) op.rows[copy] = next[size(op.ids[copy])]++;
}

void spread_tokens(const SpreadTokens& op) {
  for_each_copy(op.of, [&](std::int64_t copy, std::int64_t token, std::int64_t row) {
    const float weight = weight_of(op.of, copy);
    const float* const from = floats(op.x) + token * op.of.width;
    float* const to = floats(op.copies) + row * op.of.width;
    for (std::int64_t i = 0; i < op.of.width; ++i) to[i] = weight * from[i];
  });
}

void sum_copies(const SumCopies& op) {
  if (!op.add) std::fill_n(floats(op.y), op.of.tokens * op.of.width, 0.0F);
  for_each_copy(op.of, [&](std::int64_t copy, std::int64_t token, std::int64_t row) {
    const float weight = weight_of(op.of, copy);
    const float* const from = floats(op.copies) + row * op.of.width;
    float* const to = floats(op.y) + token * op.of.width;
    for (std::int64_t i = 0; i < op.of.width; ++i) to[i] += weight * from[i];
  });
}

void weight_gradients(const WeightGradients& op) {
  for_each_copy(op.of, [&](std::int64_t copy, std::int64_t token, std::int64_t row) {
    const float* const d_y = floats(op.d_y) + token * op.of.width;
    op.d_weights[copy] = std::inner_product(d_y, d_y + op.of.width, floats(op.copies) + row * op.of.width, 0.0F);
  });
}

}  // namespace hdpsim::kernels::cpu
