#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/impl/product.h"
#include "kernels/cpu/impl/vector.h"
#include "kernels/spec/layer.h"

/// The rest of a transformer layer. Loops without a reduction or an exponential are left to the compiler's vectoriser,
/// which knows the width of the file's instruction set.
namespace hdpsim::kernels::cpu::HDPSIM_CPU_KERNELS {

/// Calls whole(i) for every full vector of [0, count) and rest(i, n) for the n elements left.
template <class Whole, class Rest>
inline void for_vectors(std::int64_t count, const Whole& whole, const Rest& rest) {
  std::int64_t i = 0;
  for (; i + width <= count; i += width) whole(i);
  if (i < count) rest(i, count - i);
}

/// Sum over [0, count) of term(i, load), with load the way to read a whole or a partial vector (zero beyond the end).
template <class Term>
inline float sum_over(std::int64_t count, const Term& term) {
  constexpr std::int64_t step = std::int64_t{4} * width;  // four chains hide the latency of additions
  Vector sums[4] = {};
  std::int64_t i = 0;
  const auto whole = [](const float* from) { return load(from); };
  for (; i + step <= count; i += step) {
    for (std::int64_t chain = 0; chain < 4; ++chain) sums[chain] += term(i + chain * width, whole);
  }
  for (; i + width <= count; i += width) sums[0] += term(i, whole);
  if (i < count) {
    sums[1] += term(i, [&](const float* from) { return load_first(from, count - i); });
  }
  return sum_of((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

inline void rms_norm_forward(const RmsNormForward& op) {
  const auto* weight = static_cast<const float*>(op.weight);
  for (std::int64_t token = 0; token < op.tokens; ++token) {
    const float* x = static_cast<const float*>(op.x) + token * op.width;
    float* y = static_cast<float*>(op.y) + token * op.width;
    const float squares = sum_over(op.width, [&](std::int64_t i, const auto& read) {
      const Vector value = read(x + i);
      return value * value;
    });
    const float inverse_rms = 1 / std::sqrt(squares / static_cast<float>(op.width) + op.epsilon);
    for (std::int64_t i = 0; i < op.width; ++i) y[i] = x[i] * inverse_rms * weight[i];
    op.inverse_rms[token] = inverse_rms;
  }
}

inline void rms_norm_backward(const RmsNormBackward& op) {
  const auto* weight = static_cast<const float*>(op.weight);
  for (std::int64_t token = 0; token < op.tokens; ++token) {
    const float* x = static_cast<const float*>(op.x) + token * op.width;
    const float* d_y = static_cast<const float*>(op.d_y) + token * op.width;
    float* d_x = static_cast<float*>(op.d_x) + token * op.width;
    float* d_weight = op.d_weight;
    const float r = op.inverse_rms[token];
    const float dot = sum_over(
        op.width, [&](std::int64_t i, const auto& read) { return read(d_y + i) * read(weight + i) * read(x + i); });
    const float towards_x = r * r * r * dot / static_cast<float>(op.width);
    // d_x may be d_y, which is why both are done at once; nothing else may overlap, which the compiler cannot see.
    HDPSIM_INDEPENDENT_ITERATIONS
    for (std::int64_t i = 0; i < op.width; ++i) {
      const float gradient = d_y[i];
      d_weight[i] += gradient * x[i] * r;
      d_x[i] = r * gradient * weight[i] - x[i] * towards_x;
    }
  }
}

/// Cosine and sine of angles given in turns: reduced to half a turn either way, then the power series, whose first term
/// left out is below (pi)^21 / 21! = 6e-10.
struct Rotation {
  static constexpr int terms = 10;
  double cosine[terms];  ///< (-1)^k (2 pi)^2k / (2k)!
  double sine[terms];    ///< (-1)^k (2 pi)^(2k + 1) / (2k + 1)!

  constexpr Rotation() : cosine{}, sine{} {
    constexpr double turn = 6.283185307179586476925;
    double term = 1;
    for (int k = 0; k < terms; ++k) {
      cosine[k] = term;
      sine[k] = term * turn / (2 * k + 1);
      term *= -turn * turn / ((2 * k + 1) * (2 * k + 2));
    }
  }
};

/// Cosines and sines of one position. A position times a frequency needs fp64: a million turns leave no fraction in
/// fp32.
inline void rotations(double position, const double* turns_per_position, std::int64_t count, float* cosines,
                      float* sines) {
  static constexpr Rotation series;
  constexpr double magic = 6755399441055744.0;  // 1.5 x 2^52: adding it rounds to integers
  for (std::int64_t i = 0; i < count; ++i) {
    const double all = position * turns_per_position[i];
    const double turns = all - ((all + magic) - magic);
    const double square = turns * turns;
    double cosine = series.cosine[Rotation::terms - 1];
    double sine = series.sine[Rotation::terms - 1];
#pragma GCC unroll 10
    for (int k = Rotation::terms - 2; k >= 0; --k) {
      cosine = cosine * square + series.cosine[k];
      sine = sine * square + series.sine[k];
    }
    cosines[i] = static_cast<float>(cosine);
    sines[i] = static_cast<float>(sine * turns);
  }
}

inline void rope(const Rope& op) {
  constexpr std::int64_t most_pairs = 256;  // per pass: the tables stay on the stack
  constexpr double turn = 6.283185307179586476925;
  const std::int64_t half = op.dim / 2;
  const std::int64_t head_stride = op.head_stride > 0 ? op.head_stride : op.dim;
  double turns_per_position[most_pairs];
  float cosines[most_pairs];
  float sines[most_pairs];
  for (std::int64_t begin = 0; begin < half; begin += most_pairs) {
    const std::int64_t count = least(most_pairs, half - begin);
    for (std::int64_t i = 0; i < count; ++i) {
      const double exponent = -2 * static_cast<double>(begin + i) / static_cast<double>(op.dim);
      turns_per_position[i] = (op.inverse ? -1 : 1) * std::pow(op.base, exponent) / turn;
    }
    for (std::int64_t token = 0; token < op.tokens; ++token) {
      rotations(op.positions[token], turns_per_position, count, cosines, sines);
      for (std::int64_t head = 0; head < op.heads; ++head) {
        float* first = static_cast<float*>(op.x) + token * op.stride + head * head_stride + begin;
        float* second = first + half;
        HDPSIM_INDEPENDENT_ITERATIONS
        for (std::int64_t i = 0; i < count; ++i) {
          const float a = first[i];
          const float b = second[i];
          first[i] = a * cosines[i] - b * sines[i];
          second[i] = b * cosines[i] + a * sines[i];
        }
      }
    }
  }
}

inline Vector sigmoid(Vector x) {
  return broadcast(1) / (broadcast(1) + exp2(x * broadcast(-log2_e)));
}

inline void swiglu_forward(const SwigluForward& op) {
  for (std::int64_t token = 0; token < op.tokens; ++token) {
    const float* gate = static_cast<const float*>(op.gate_up) + token * 2 * op.width;
    const float* up = gate + op.width;
    float* y = static_cast<float*>(op.y) + token * op.width;
    const auto value = [](Vector g, Vector u) { return g * sigmoid(g) * u; };
    for_vectors(
        op.width, [&](std::int64_t i) { store(y + i, value(load(gate + i), load(up + i))); },
        [&](std::int64_t i, std::int64_t n) {
          store_first(y + i, value(load_first(gate + i, n), load_first(up + i, n)), n);
        });
  }
}

inline void swiglu_backward(const SwigluBackward& op) {
  struct Gradients {
    Vector gate, up;
  };
  const auto gradients = [](Vector gate, Vector up, Vector d_y) {
    const Vector s = sigmoid(gate);
    return Gradients{d_y * up * s * (broadcast(1) + gate * (broadcast(1) - s)), d_y * gate * s};
  };
  for (std::int64_t token = 0; token < op.tokens; ++token) {
    const float* gate = static_cast<const float*>(op.gate_up) + token * 2 * op.width;
    const float* up = gate + op.width;
    const float* d_y = static_cast<const float*>(op.d_y) + token * op.width;
    float* d_gate = static_cast<float*>(op.d_gate_up) + token * 2 * op.width;
    float* d_up = d_gate + op.width;
    for_vectors(
        op.width,
        [&](std::int64_t i) {
          const Gradients result = gradients(load(gate + i), load(up + i), load(d_y + i));
          store(d_gate + i, result.gate);
          store(d_up + i, result.up);
        },
        [&](std::int64_t i, std::int64_t n) {
          const Gradients result = gradients(load_first(gate + i, n), load_first(up + i, n), load_first(d_y + i, n));
          store_first(d_gate + i, result.gate, n);
          store_first(d_up + i, result.up, n);
        });
  }
}

inline void add(const Add& op) {
  const auto* a = static_cast<const float*>(op.a);
  const auto* b = static_cast<const float*>(op.b);
  auto* y = static_cast<float*>(op.y);
  HDPSIM_INDEPENDENT_ITERATIONS
  for (std::int64_t i = 0; i < op.count; ++i) y[i] = a[i] + b[i];
}

inline void embedding_forward(const EmbeddingForward& op) {
  const std::size_t bytes = static_cast<std::size_t>(op.width) * sizeof(float);
  for (std::int64_t token = 0; token < op.tokens; ++token) {
    float* const y = static_cast<float*>(op.y) + token * op.width;
    if (op.ids[token] < 0) {
      std::memset(y, 0, bytes);
    } else {
      std::memcpy(y, static_cast<const float*>(op.table) + op.ids[token] * op.width, bytes);
    }
  }
}

inline void embedding_backward(const EmbeddingBackward& op) {
  for (std::int64_t token = 0; token < op.tokens; ++token) {
    if (op.ids[token] < 0) continue;
    const float* from = static_cast<const float*>(op.d_y) + token * op.width;
    float* to = op.d_table + op.ids[token] * op.width;
    HDPSIM_INDEPENDENT_ITERATIONS
    for (std::int64_t i = 0; i < op.width; ++i) to[i] += from[i];
  }
}

inline float largest_of(const float* numbers, std::int64_t count) {
  Vector largest = broadcast(-infinity);
  for_vectors(
      count, [&](std::int64_t i) { largest = maximum(load(numbers + i), largest); },
      [&](std::int64_t i, std::int64_t n) {
        for (std::int64_t j = i; j < i + n; ++j) largest = maximum(broadcast(numbers[j]), largest);
      });
  return maximum_of(largest);
}

/// Softmax of one row in place, times scale; returns log sum exp.
inline float softmax_row(float* logits, std::int64_t count, float scale) {
  const float maximum_logit = largest_of(logits, count);
  const auto exponential = [&](Vector x) { return exp2((x - broadcast(maximum_logit)) * broadcast(log2_e)); };
  Vector sum{};
  float rest_sum = 0;
  for_vectors(
      count,
      [&](std::int64_t i) {
        const Vector p = exponential(load(logits + i));
        sum += p;
        store(logits + i, p);
      },
      [&](std::int64_t i, std::int64_t n) {
        const Vector p = exponential(load_first(logits + i, n));
        for (std::int64_t j = 0; j < n; ++j) rest_sum += p[j];
        store_first(logits + i, p, n);
      });
  const float total = sum_of(sum) + rest_sum;
  const float factor = scale / total;
  for (std::int64_t i = 0; i < count; ++i) logits[i] *= factor;
  return maximum_logit + std::log(total);
}

inline float log_sum_exp_row(const float* logits, std::int64_t count) {
  if (count == 0) return -infinity;
  const float maximum_logit = largest_of(logits, count);
  const auto exponential = [&](Vector x) { return exp2((x - broadcast(maximum_logit)) * broadcast(log2_e)); };
  Vector sum{};
  float rest_sum = 0;
  for_vectors(
      count, [&](std::int64_t i) { sum += exponential(load(logits + i)); },
      [&](std::int64_t i, std::int64_t n) {
        const Vector p = exponential(load_first(logits + i, n));
        for (std::int64_t j = 0; j < n; ++j) rest_sum += p[j];
      });
  return maximum_logit + std::log(sum_of(sum) + rest_sum);
}

inline void log_sum_exp(const LogSumExp& op) {
  for (std::int64_t token = 0; token < op.tokens; ++token) {
    op.result[token] = log_sum_exp_row(static_cast<const float*>(op.logits) + token * op.vocabulary, op.vocabulary);
  }
}

/// Some columns of the softmax of a row whose log sum exp is known, in place, times scale.
inline void softmax_part(float* logits, std::int64_t count, float log_sum_exp, float scale) {
  const auto probability = [&](Vector x) {
    return broadcast(scale) * exp2((x - broadcast(log_sum_exp)) * broadcast(log2_e));
  };
  for_vectors(
      count, [&](std::int64_t i) { store(logits + i, probability(load(logits + i))); },
      [&](std::int64_t i, std::int64_t n) { store_first(logits + i, probability(load_first(logits + i, n)), n); });
}

inline void cross_entropy(const CrossEntropy& op) {
  for (std::int64_t token = 0; token < op.tokens; ++token) {
    float* logits = static_cast<float*>(op.logits) + token * op.vocabulary;
    const std::int32_t target = op.targets[token];
    if (target < 0) {
      for (std::int64_t i = 0; i < op.vocabulary; ++i) logits[i] = 0;
      op.loss[token] = 0;
      continue;
    }
    const bool is_here = target < op.vocabulary;
    const float target_logit = is_here ? logits[target] : 0;
    float log_sum_exp = 0;
    if (op.log_sum_exp == nullptr) {
      log_sum_exp = softmax_row(logits, op.vocabulary, op.scale);
    } else {
      log_sum_exp = op.log_sum_exp[token];
      softmax_part(logits, op.vocabulary, log_sum_exp, op.scale);
    }
    op.loss[token] = is_here ? log_sum_exp - target_logit : 0;
    if (is_here) logits[target] -= op.scale;
  }
}

inline void adam(const Adam& settings) {
  const Adam op = settings;  // a copy, which the stores below cannot change: else nothing is vectorised
  const auto step = static_cast<double>(op.step);
  const auto mean_correction = static_cast<float>(1 / (1 - std::pow(static_cast<double>(op.beta1), step)));
  const auto variance_correction = static_cast<float>(1 / (1 - std::pow(static_cast<double>(op.beta2), step)));
  HDPSIM_INDEPENDENT_ITERATIONS
  for (std::int64_t i = 0; i < op.count; ++i) {
    const float g = op.gradient[i] * op.gradient_scale;
    const float mean = op.beta1 * op.m[i] + (1 - op.beta1) * g;
    const float variance = op.beta2 * op.v[i] + (1 - op.beta2) * g * g;
    const float update = mean * mean_correction / (std::sqrt(variance * variance_correction) + op.epsilon);
    op.m[i] = mean;
    op.v[i] = variance;
    op.master[i] -= op.rate * (update + op.decay * op.master[i]);
  }
  if (op.parameter != nullptr) {
    std::memcpy(op.parameter, op.master, static_cast<std::size_t>(op.count) * sizeof(float));
  }
}

}  // namespace hdpsim::kernels::cpu::HDPSIM_CPU_KERNELS
