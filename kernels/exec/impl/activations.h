#pragma once

#include <cstdint>
#include <functional>

#include "kernels/exec/share.h"
#include "kernels/spec/backend.h"
#include "sim/model/transformer.h"

namespace hdpsim::kernels::exec {

/// What a layer keeps for its backward pass. T rows, H heads and K key-value heads of dimension d, hidden size h, inner
/// width f.
struct LayerActivations {
  float* input = nullptr;  ///< [T, h]
  float* attention_inverse_rms = nullptr;
  float* attention_normed = nullptr;  ///< [T, h]
  float* q = nullptr;                 ///< [T, H d]
  float* kv = nullptr;                ///< [T, 2, K d]
  float* o = nullptr;                 ///< [T, H d]
  float* lse = nullptr;               ///< [H, T]
  float* middle = nullptr;            ///< [T, h], between attention and MLP
  float* mlp_inverse_rms = nullptr;
  float* mlp_normed = nullptr;  ///< [T, h]
  float* gate_up = nullptr;     ///< [T, 2 f]; backward puts its gradient here
  float* inner = nullptr;       ///< [T, f]
};

/// What all layers share.
struct SharedActivations {
  std::int32_t* ids = nullptr;
  std::int32_t* targets = nullptr;
  std::int32_t* positions = nullptr;
  float* output = nullptr;  ///< [T, h], of the last layer
  float* final_inverse_rms = nullptr;
  float* final_normed = nullptr;  ///< [T, h]
  float* logits = nullptr;        ///< [T, vocabulary]; backward puts their gradient here
  float* loss = nullptr;          ///< [T]
  float* d_x = nullptr;           ///< [T, h], of the residual stream
  float* d_normed = nullptr;      ///< [T, h]
  float* d_inner = nullptr;       ///< [T, f]
  float* d_o = nullptr;           ///< [T, H d]
  float* d_q = nullptr;           ///< [T, H d]
  float* d_kv = nullptr;          ///< [T, 2, K d]
};

/// Memory of one micro-batch after the other, in one piece that grows.
class Activations {
 public:
  Activations(Backend& backend, const Transformer& model) : backend_(backend), model_(model) {}

  /// Room for the rows of a share, whose ids, targets and positions are uploaded.
  void begin(const Share& share);
  [[nodiscard]] std::int64_t rows() const { return rows_; }
  [[nodiscard]] LayerActivations layer(std::int64_t index) const;
  [[nodiscard]] const SharedActivations& shared() const { return shared_; }

 private:
  using Take = std::function<float*(std::int64_t count)>;
  [[nodiscard]] LayerActivations lay_out_layer(const Take& take) const;
  [[nodiscard]] SharedActivations lay_out_shared(const Take& take) const;

  Backend& backend_;
  const Transformer& model_;
  std::int64_t rows_ = 0;
  std::int64_t layer_floats_ = 0;
  std::int64_t capacity_ = 0;  ///< Of memory_, in floats.
  DeviceMemory memory_;        ///< One layer after the other, then what they share.
  SharedActivations shared_;
};

}  // namespace hdpsim::kernels::exec
