#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/model/transformer.h"

namespace hdpsim::kernels::exec {

/// A tensor among the parameters: `count` numbers from `begin` on. Matrices are row-major [out, in], so that a linear
/// layer is y = x W^T.
struct Tensor {
  std::int64_t begin = 0;
  std::int64_t count = 0;
};

/// Of one layer. H heads and K key-value heads of dimension d, hidden size h, inner width f.
struct LayerTensors {
  Tensor attention_norm;  ///< [h]
  Tensor query;           ///< [H d, h]; with `key_value` the fused QKV matrix, whose rows follow one another
  Tensor key_value;       ///< [2 K d, h]: the keys' rows, then the values'
  Tensor output;          ///< [h, H d]
  Tensor mlp_norm;        ///< [h]
  Tensor gate_up;         ///< [2 f, h]: the gate's rows, then those of the other factor
  Tensor down;            ///< [h, f]
};

/// Where the parameters of a model lie in one flat buffer, which is what its optimizer and its collectives see.
class ParameterLayout {
 public:
  /// UnsupportedInput with everything about the model that cannot be executed: experts, biases, learned positions, an
  /// MLP without a gate, head dimensions other than 64 and 128.
  explicit ParameterLayout(const Transformer& model);

  [[nodiscard]] std::int64_t count() const { return count_; }
  [[nodiscard]] const Tensor& embedding() const { return embedding_; }  ///< [vocabulary, h]
  [[nodiscard]] const std::vector<LayerTensors>& layers() const { return layers_; }
  [[nodiscard]] const Tensor& final_norm() const { return final_norm_; }  ///< [h]
  [[nodiscard]] const Tensor& head() const { return head_; }  ///< [vocabulary, h]; the embedding, if they are tied

  /// The initial values of parameters [begin, begin + values.size()): functions of seed and index alone, so that every
  /// sharding starts from the same bits. Norms are 1, all else is uniform with the deviation 0.02, of the matrices that
  /// write to the residual stream 0.02 / sqrt(2 layers) (GPT-2, Radford et al. 2019).
  void initial_values(std::uint64_t seed, std::int64_t begin, std::span<float> values) const;

 private:
  enum class Start { ones, usual, residual };
  struct Stretch {
    std::int64_t end;
    Start start;
  };
  Tensor add(std::int64_t count, Start start);

  std::int64_t count_ = 0;
  double residual_share_ = 1;
  Tensor embedding_, final_norm_, head_;
  std::vector<LayerTensors> layers_;
  std::vector<Stretch> stretches_;  ///< In ascending order of their ends.
};

}  // namespace hdpsim::kernels::exec
