#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sim/model/layer_operations.h"
#include "sim/model/transformer.h"
#include "sim/program/chunk_map.h"

namespace hdpsim::kernels::exec {

/// A tensor among the parameters: `count` numbers from index `begin` on. Matrices are row-major [out, in], so that a
/// linear layer is y = x W^T.
struct Tensor {
  std::int64_t begin = 0;
  std::int64_t count = 0;
};

/// A linear layer of the model on one device: y = x W^T, x [T, in], y [T, out].
struct Linear {
  std::int64_t out = 0;
  std::int64_t in = 0;
  Tensor weight;  ///< [out, in]; of experts that of all of them, one after the other

  /// The part with these rows of the weight: y [T, count].
  [[nodiscard]] Linear rows(std::int64_t begin, std::int64_t count) const {
    return {count, in, {weight.begin + begin * in, count * in}};
  }
};

/// The parameters of one layer, as the list of its operations has them (sim/model/layer_operations.h). The weights of a
/// product lie side by side: of a QKV product the rows of queries, keys and values, of an MLP's first product those of
/// the gate and of the up projection. On devices of other stages tensors are empty.
class LayerTensors {
 public:
  /// The i-th product of a part of the layer.
  [[nodiscard]] const Linear& product(DensePart part, std::size_t i = 0) const;
  /// The weight of the i-th norm of a part.
  [[nodiscard]] const Tensor& norm(DensePart part, std::size_t i = 0) const;

 private:
  friend class ParameterLayout;
  std::vector<std::pair<DensePart, Linear>> products_;
  std::vector<std::pair<DensePart, Tensor>> norms_;
};

/// One device of the tensor-parallel group of an HDP rank.
struct TensorShard {
  int index = 0;
  int devices = 1;
};

/// One stage of the pipeline of an HDP rank, and the chunks of layers that it has. The first chunk
/// has the embedding, the last one the final norm and the head.
struct PipelineStage {
  int index = 0;
  int stages = 1;
  LayerDeal deal = {};                  ///< Which layers the chunks of the whole model have.
  std::vector<std::int64_t> own = {0};  ///< Those of this stage.
  [[nodiscard]] bool has(std::int64_t chunk) const { return std::find(own.begin(), own.end(), chunk) != own.end(); }
  [[nodiscard]] bool has_embedding() const { return has(0); }
  [[nodiscard]] bool has_head() const { return has(deal.chunks() - 1); }
};
/// The stage of this index in a pipeline.
[[nodiscard]] PipelineStage stage_at(int index, const ChunkMap& chunks);

/// The shard of `model` on one device, as a model: its heads, its part of the MLP's width and of the vocabulary, which
/// is cut into rows of ceil(vocabulary / devices), so that the last devices may have fewer.
[[nodiscard]] Transformer shard_of(const Transformer& model, const TensorShard& shard);
/// The first entry of the device's part of the vocabulary.
[[nodiscard]] std::int64_t first_of_vocabulary(const Transformer& model, const TensorShard& shard);

/// The layout of one device's parameters in one flat buffer, on which its optimizer and its collectives work. Under
/// tensor parallelism (Shoeybi et al. 2019) the device has rows of the QKV and the gate-up matrices, of the embedding
/// and of the head, columns of the output and the down projection, and all norms. A stage of a pipeline has those of
/// its layers; if embedding and head are one table, the first and the last stage both have it. The whole model is the
/// layout of a single device that holds everything; the order of tensors is the same.
class ParameterLayout {
 public:
  /// UnsupportedInput as require_executable() throws it (requirements.h). Requires a layer for every chunk (checked).
  explicit ParameterLayout(const Transformer& model, const TensorShard& shard = {}, const PipelineStage& stage = {});

  [[nodiscard]] std::int64_t count() const { return count_; }
  [[nodiscard]] std::int64_t whole_count() const { return whole_count_; }  ///< Number of parameters of the whole model.
  // Tensors of other stages are empty.
  [[nodiscard]] const Tensor& embedding() const { return embedding_; }               ///< [vocabulary, h]
  [[nodiscard]] const std::vector<LayerTensors>& layers() const { return layers_; }  ///< All layers of the model.
  [[nodiscard]] const Tensor& final_norm() const { return final_norm_; }             ///< [h]
  [[nodiscard]] const Tensor& head() const { return head_; }  ///< [vocabulary, h]; the embedding, if they are tied

  /// `count` parameters from `begin` on that are also consecutive in the whole model, from `in_whole` on.
  struct Stretch {
    std::int64_t begin = 0;
    std::int64_t count = 0;
    std::int64_t in_whole = 0;
  };
  /// The parameters [begin, begin + count) as stretches, in ascending order; indices behind the last parameter are left
  /// out.
  [[nodiscard]] std::vector<Stretch> stretches(std::int64_t begin, std::int64_t count) const;

  /// The initial values of parameters [begin, begin + values.size()). They depend only on seed and place in the whole
  /// model, so that every sharding starts from the same bits. Norms are 1; all others are uniform with deviation 0.02,
  /// or 0.02 / sqrt(2 layers) for the matrices that write to the residual stream (GPT-2, Radford et al. 2019).
  void initial_values(std::uint64_t seed, std::int64_t begin, std::span<float> values) const;

 private:
  enum class Start { ones, usual, residual };
  /// Rows or columns of a matrix: [rows, width] on this device, each row a part of one of `whole_width` columns in the
  /// whole model.
  struct Piece {
    std::int64_t begin;
    std::int64_t rows;
    std::int64_t width;
    std::int64_t in_whole;
    std::int64_t whole_width;
    Start start;
    [[nodiscard]] std::int64_t end() const { return begin + rows * width; }
  };
  enum class Cut { none, rows, columns };
  /// A matrix [rows, width].
  struct Matrix {
    std::int64_t rows;
    std::int64_t width;
    Cut cut;
    Start start;
  };
  /// Adds the next matrix of the whole model; the device has its share of it if it is on its stage (`here`).
  Tensor add(const Matrix& matrix, bool here);
  /// Adds the device's share of a matrix that begins at `in_whole`.
  Tensor place(const Matrix& matrix, std::int64_t in_whole);
  LayerTensors add_layer(const Transformer& kind, bool here);
  Linear add_product(const LayerOperation& product, bool here);
  [[nodiscard]] std::size_t piece_of(std::int64_t index) const;

  TensorShard shard_;
  std::int64_t count_ = 0;
  std::int64_t whole_count_ = 0;
  double residual_share_ = 1;
  Tensor embedding_, final_norm_, head_;
  std::vector<LayerTensors> layers_;
  std::vector<Piece> pieces_;  ///< In the order of this device's buffer.
};

}  // namespace hdpsim::kernels::exec
