#pragma once

#include <cstdint>
#include <functional>

#include "kernels/exec/parameters.h"
#include "kernels/exec/share.h"
#include "kernels/spec/backend.h"
#include "sim/model/transformer.h"

namespace hdpsim::kernels::exec {

/// Rows of a micro-batch on one device. Products and attention are on all of the HDP rank's rows; norms and residuals
/// on the device's own, which are all of them without tensor parallelism (sequence parallelism, Korthikanti et al. 2022).
struct Rows {
  std::int64_t all = 0;
  std::int64_t own = 0;
  std::int64_t share = 0;   ///< ceil(all / devices): own rows begin at index x share; the last devices may have fewer.
  std::int64_t padded = 0;  ///< devices x share: what gathered buffers hold.
  std::int64_t begin = 0;   ///< Of the own rows.
};

/// What a layer keeps for its backward pass. T rows, S own rows, G padded rows; H heads and K key-value heads of the
/// device, of dimension d; hidden size h, inner width f of the device. Gathered inputs of products are kept as they are.
struct LayerActivations {
  float* input = nullptr;  ///< [S, h]
  float* attention_inverse_rms = nullptr;
  float* attention_normed = nullptr;  ///< [G, h]
  float* q = nullptr;                 ///< [T, H d]
  float* kv = nullptr;                ///< [T, 2, K d]
  float* o = nullptr;                 ///< [T, H d]
  float* lse = nullptr;               ///< [H, T]
  float* middle = nullptr;            ///< [S, h], between attention and MLP
  float* mlp_inverse_rms = nullptr;
  float* mlp_normed = nullptr;  ///< [G, h]
  float* gate_up = nullptr;     ///< [T, 2 f]; backward puts its gradient here
  float* inner = nullptr;       ///< [T, f]
};

/// What all layers share.
struct SharedActivations {
  std::int32_t* ids = nullptr;      ///< In the device's part of the vocabulary; -1: in another's.
  std::int32_t* targets = nullptr;  ///< Likewise; beyond it: in another's; -1: none.
  std::int32_t* positions = nullptr;
  float* output = nullptr;  ///< [S, h], of the last layer
  float* final_inverse_rms = nullptr;
  float* final_normed = nullptr;  ///< [G, h]
  float* logits = nullptr;        ///< [T, vocabulary]; backward puts their gradient here
  float* log_sum_exp = nullptr;   ///< [devices, T] of the logits of each; [T] of all when they are joined
  float* loss = nullptr;          ///< [T]
  float* d_x = nullptr;           ///< [G, h], of the residual stream
  float* d_normed = nullptr;      ///< [G, h]; also the partial sums of products in forward
  float* d_inner = nullptr;       ///< [T, f]
  float* d_o = nullptr;           ///< [T, H d]
  float* d_q = nullptr;           ///< [T, H d]
  float* d_kv = nullptr;          ///< [T, 2, K d]
};

/// Memory of one micro-batch after the other, in one piece that grows.
class Activations {
 public:
  /// `model`: the whole one.
  Activations(Backend& backend, const Transformer& model, const TensorShard& shard)
      : backend_(backend),
        model_(shard_of(model, shard)),
        shard_(shard),
        first_of_vocabulary_(exec::first_of_vocabulary(model, shard)) {}

  /// Room for the rows of a share, whose ids, targets and positions are uploaded.
  void begin(const Share& share);
  [[nodiscard]] const Rows& rows() const { return rows_; }
  [[nodiscard]] LayerActivations layer(std::int64_t index) const;
  [[nodiscard]] const SharedActivations& shared() const { return shared_; }

 private:
  using Take = std::function<float*(std::int64_t count)>;
  [[nodiscard]] LayerActivations lay_out_layer(const Take& take) const;
  [[nodiscard]] SharedActivations lay_out_shared(const Take& take) const;

  void upload_tokens(const Share& share);

  Backend& backend_;
  Transformer model_;  ///< What the device holds of it.
  TensorShard shard_;
  std::int64_t first_of_vocabulary_;
  Rows rows_;
  std::int64_t layer_floats_ = 0;
  std::int64_t capacity_ = 0;  ///< Of memory_, in floats.
  DeviceMemory memory_;        ///< One layer after the other, then what they share.
  SharedActivations shared_;
};

}  // namespace hdpsim::kernels::exec
