#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/spec/layer.h"

/// The rest of a transformer layer in fp64, formula by formula as in kernels/spec/layer.h. Tensors are dense and
/// row-major; sizes that are not passed follow from the others.
namespace hdpsim::kernels::reference {

struct RmsNormResult {
  std::vector<double> y;            ///< [tokens, width]
  std::vector<double> inverse_rms;  ///< [tokens]
};
struct RmsNormGradients {
  std::vector<double> d_x;       ///< [tokens, width]
  std::vector<double> d_weight;  ///< [width]
};
/// x: [tokens, width]; weight: [width].
[[nodiscard]] RmsNormResult rms_norm_forward(std::span<const double> x, std::span<const double> weight, double epsilon);
[[nodiscard]] RmsNormGradients rms_norm_backward(std::span<const double> x, std::span<const double> weight,
                                                 std::span<const double> inverse_rms, std::span<const double> d_y);

/// Works in place. x: [tokens, heads, dim]; positions: [tokens].
void rope(std::span<double> x, std::span<const std::int32_t> positions, std::int64_t dim, double base, bool inverse);

/// gate_up: [tokens, 2 width]; results [tokens, width] and [tokens, 2 width].
[[nodiscard]] std::vector<double> swiglu_forward(std::span<const double> gate_up, std::int64_t width);
[[nodiscard]] std::vector<double> swiglu_backward(std::span<const double> gate_up, std::span<const double> d_y,
                                                  std::int64_t width);

/// table: [vocabulary, width]; ids: [tokens]; results [tokens, width] and [vocabulary, width].
[[nodiscard]] std::vector<double> embedding_forward(std::span<const double> table, std::span<const std::int32_t> ids,
                                                    std::int64_t width);
[[nodiscard]] std::vector<double> embedding_backward(std::span<const std::int32_t> ids, std::span<const double> d_y,
                                                     std::int64_t vocabulary);

struct CrossEntropyResult {
  std::vector<double> loss;      ///< [tokens], not scaled.
  std::vector<double> d_logits;  ///< [tokens, vocabulary], scaled.
};
/// logits: [tokens, vocabulary]; targets: [tokens], -1 is ignored.
[[nodiscard]] CrossEntropyResult cross_entropy(std::span<const double> logits, std::span<const std::int32_t> targets,
                                               double scale);

/// One AdamW step in place. Reads only the numbers of `settings`, not the pointers and not the count.
void adam(const Adam& settings, std::span<double> master, std::span<double> m, std::span<double> v,
          std::span<const double> gradient);

/// C = A B. Reads m, n, k and the transpositions of `shape`.
[[nodiscard]] std::vector<double> matrix_product(const MatrixProduct& shape, std::span<const double> a,
                                                 std::span<const double> b);

}  // namespace hdpsim::kernels::reference
