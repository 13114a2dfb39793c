#include "kernels/reference/reference_layer.h"

#include <algorithm>
#include <cmath>

namespace hdpsim::kernels::reference {
namespace {

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

}  // namespace

RmsNormResult rms_norm_forward(std::span<const double> x, std::span<const double> weight, double epsilon) {
  const std::size_t width = weight.size();
  RmsNormResult result;
  for (std::size_t row = 0; row < x.size(); row += width) {
    double squares = 0;
    for (std::size_t i = 0; i < width; ++i) squares += x[row + i] * x[row + i];
    const double inverse_rms = 1 / std::sqrt(squares / static_cast<double>(width) + epsilon);
    result.inverse_rms.push_back(inverse_rms);
    for (std::size_t i = 0; i < width; ++i) result.y.push_back(x[row + i] * weight[i] * inverse_rms);
  }
  return result;
}

RmsNormGradients rms_norm_backward(std::span<const double> x, std::span<const double> weight,
                                   std::span<const double> inverse_rms, std::span<const double> d_y) {
  const std::size_t width = weight.size();
  RmsNormGradients gradients;
  gradients.d_weight.assign(width, 0);
  for (std::size_t token = 0; token < inverse_rms.size(); ++token) {
    const std::size_t row = token * width;
    const double r = inverse_rms[token];
    double mean = 0;  // mean of g x
    for (std::size_t i = 0; i < width; ++i) mean += d_y[row + i] * weight[i] * x[row + i] / static_cast<double>(width);
    for (std::size_t i = 0; i < width; ++i) {
      gradients.d_x.push_back(r * d_y[row + i] * weight[i] - x[row + i] * r * r * r * mean);
      gradients.d_weight[i] += d_y[row + i] * x[row + i] * r;
    }
  }
  return gradients;
}

void rope(std::span<double> x, std::span<const std::int32_t> positions, std::int64_t dim, double base, bool inverse) {
  const auto half = static_cast<std::size_t>(dim / 2);
  const std::size_t row_size = x.size() / positions.size();
  for (std::size_t first = 0; first < x.size(); first += 2 * half) {
    const double position = positions[first / row_size];
    for (std::size_t i = 0; i < half; ++i) {
      const double frequency = std::pow(base, -2 * static_cast<double>(i) / static_cast<double>(dim));
      const double angle = (inverse ? -1 : 1) * position * frequency;
      const double a = x[first + i];
      const double b = x[first + half + i];
      x[first + i] = a * std::cos(angle) - b * std::sin(angle);
      x[first + half + i] = b * std::cos(angle) + a * std::sin(angle);
    }
  }
}

std::vector<double> swiglu_forward(std::span<const double> gate_up, std::int64_t width) {
  const auto n = static_cast<std::size_t>(width);
  std::vector<double> y;
  for (std::size_t row = 0; row < gate_up.size(); row += 2 * n) {
    for (std::size_t i = row; i < row + n; ++i) y.push_back(gate_up[i] * sigmoid(gate_up[i]) * gate_up[i + n]);
  }
  return y;
}

std::vector<double> swiglu_backward(std::span<const double> gate_up, std::span<const double> d_y, std::int64_t width) {
  const auto n = static_cast<std::size_t>(width);
  std::vector<double> d_gate_up(gate_up.size());
  for (std::size_t i = 0; i < d_y.size(); ++i) {
    const std::size_t at = i / n * 2 * n + i % n;
    const double gate = gate_up[at];
    const double s = sigmoid(gate);
    d_gate_up[at] = d_y[i] * gate_up[at + n] * s * (1 + gate * (1 - s));
    d_gate_up[at + n] = d_y[i] * gate * s;
  }
  return d_gate_up;
}

std::vector<double> embedding_forward(std::span<const double> table, std::span<const std::int32_t> ids,
                                      std::int64_t width) {
  std::vector<double> y;
  for (const std::int32_t id : ids) {
    const auto row = table.begin() + id * width;
    y.insert(y.end(), row, row + width);
  }
  return y;
}

std::vector<double> embedding_backward(std::span<const std::int32_t> ids, std::span<const double> d_y,
                                       std::int64_t vocabulary) {
  const std::size_t width = d_y.size() / ids.size();
  std::vector<double> d_table(static_cast<std::size_t>(vocabulary) * width, 0);
  for (std::size_t i = 0; i < d_y.size(); ++i) {
    d_table[static_cast<std::size_t>(ids[i / width]) * width + i % width] += d_y[i];
  }
  return d_table;
}

CrossEntropyResult cross_entropy(std::span<const double> logits, std::span<const std::int32_t> targets, double scale) {
  const std::size_t vocabulary = logits.size() / targets.size();
  CrossEntropyResult result;
  result.loss.assign(targets.size(), 0);
  result.d_logits.assign(logits.size(), 0);
  for (std::size_t token = 0; token < targets.size(); ++token) {
    if (targets[token] < 0) continue;
    const std::span<const double> row = logits.subspan(token * vocabulary, vocabulary);
    const double largest = *std::max_element(row.begin(), row.end());
    double sum = 0;
    for (const double logit : row) sum += std::exp(logit - largest);
    const double lse = largest + std::log(sum);
    const auto target = static_cast<std::size_t>(targets[token]);
    result.loss[token] = lse - row[target];
    for (std::size_t i = 0; i < vocabulary; ++i) {
      result.d_logits[token * vocabulary + i] = scale * (std::exp(row[i] - lse) - (i == target ? 1 : 0));
    }
  }
  return result;
}

void adam(const Adam& settings, std::span<double> master, std::span<double> m, std::span<double> v,
          std::span<const double> gradient) {
  const double beta1 = settings.beta1;
  const double beta2 = settings.beta2;
  const auto step = static_cast<double>(settings.step);
  for (std::size_t i = 0; i < master.size(); ++i) {
    const double g = gradient[i] * settings.gradient_scale;
    m[i] = beta1 * m[i] + (1 - beta1) * g;
    v[i] = beta2 * v[i] + (1 - beta2) * g * g;
    const double mean = m[i] / (1 - std::pow(beta1, step));
    const double variance = v[i] / (1 - std::pow(beta2, step));
    master[i] -= settings.rate * (mean / (std::sqrt(variance) + settings.epsilon) + settings.decay * master[i]);
  }
}

std::vector<double> matrix_product(const MatrixProduct& shape, std::span<const double> a, std::span<const double> b) {
  std::vector<double> c(static_cast<std::size_t>(shape.m * shape.n), 0);
  for (std::int64_t i = 0; i < shape.m; ++i) {
    for (std::int64_t j = 0; j < shape.n; ++j) {
      for (std::int64_t l = 0; l < shape.k; ++l) {
        const auto at_a = static_cast<std::size_t>(shape.a_transposed ? l * shape.m + i : i * shape.k + l);
        const auto at_b = static_cast<std::size_t>(shape.b_transposed ? j * shape.k + l : l * shape.n + j);
        c[static_cast<std::size_t>(i * shape.n + j)] += a[at_a] * b[at_b];
      }
    }
  }
  return c;
}

}  // namespace hdpsim::kernels::reference
