#pragma once

#include <cstdint>

#include "kernels/exec/impl/activations.h"
#include "kernels/exec/parameters.h"
#include "kernels/spec/backend.h"
#include "sim/model/transformer.h"
#include "sim/model/work.h"

namespace hdpsim::kernels::exec {

/// The dense parts of a transformer on one rank, as Llama computes them: between attentions
///   embedding         x = table[ids]
///   before_attention  q, k, v = norm(x) W_qkv^T; q and k rotated by their positions
///   after_attention   m = x + o W_o^T; x' = m + (silu(g) u) W_down^T with g, u = norm(m) W_gate_up^T
///   output_head       logits = norm(x) W_head^T; forward also computes the loss and the gradient of the logits
/// and the gradients of all that. Gradients of parameters are added to. fp32 throughout.
class Dense {
 public:
  /// `parameters` and `gradients`: layout.count() numbers each, in the backend's memory.
  Dense(Backend& backend, const Transformer& model, const ParameterLayout& layout, const float* parameters,
        float* gradients)
      : backend_(backend), model_(model), layout_(layout), parameters_(parameters), gradients_(gradients) {}

  /// `layer` is ignored by the parts that do not belong to one. `loss_scale` is CrossEntropy's.
  void run(const LinearPart& part, std::int64_t layer, const Activations& activations, float loss_scale);

 private:
  /// A linear layer of the model: y = x W^T, x [T, in], y [T, out].
  struct Linear {
    std::int64_t out = 0;
    std::int64_t in = 0;
    Tensor weight;
  };
  void forward(const Linear& linear, const float* x, float* y);
  /// d_x = d_y W (+ d_x, if `add`) and d_W += d_y^T x.
  void backward(const Linear& linear, const float* x, const float* d_y, float* d_x, bool add = false);
  void norm_forward(const Tensor& weight, const float* x, float* y, float* inverse_rms);
  /// In place: d_y becomes d_x.
  void norm_backward(const Tensor& weight, const float* x, const float* inverse_rms, float* d);
  void rotate(float* q, float* kv, const std::int32_t* positions, bool inverse);
  void add(const float* a, const float* b, float* y);

  void embed();
  void embed_back();
  void head(float loss_scale);
  void head_back();
  void before_attention(std::int64_t layer);
  void before_attention_back(std::int64_t layer);
  void after_attention(std::int64_t layer);
  void after_attention_back(std::int64_t layer);

  [[nodiscard]] std::int64_t query_width() const { return model_.heads * model_.head_dim; }
  [[nodiscard]] std::int64_t kv_width() const { return 2 * model_.kv_heads * model_.head_dim; }
  [[nodiscard]] const float* parameter(const Tensor& tensor) const { return parameters_ + tensor.begin; }
  [[nodiscard]] float* gradient(const Tensor& tensor) const { return gradients_ + tensor.begin; }
  /// Where the output of a layer goes.
  [[nodiscard]] float* output_of(std::int64_t layer) const;
  [[nodiscard]] const LayerTensors& tensors(std::int64_t layer) const {
    return layout_.layers()[static_cast<std::size_t>(layer)];
  }
  [[nodiscard]] Linear qkv_query(std::int64_t layer) const {
    return {query_width(), model_.hidden, tensors(layer).query};
  }
  [[nodiscard]] Linear qkv_key_value(std::int64_t layer) const {
    return {kv_width(), model_.hidden, tensors(layer).key_value};
  }
  [[nodiscard]] Linear output(std::int64_t layer) const {
    return {model_.hidden, query_width(), tensors(layer).output};
  }
  [[nodiscard]] Linear gate_up(std::int64_t layer) const {
    return {2 * model_.ffn_hidden, model_.hidden, tensors(layer).gate_up};
  }
  [[nodiscard]] Linear down(std::int64_t layer) const {
    return {model_.hidden, model_.ffn_hidden, tensors(layer).down};
  }
  [[nodiscard]] Linear to_vocabulary() const { return {model_.vocabulary, model_.hidden, layout_.head()}; }

  Backend& backend_;
  const Transformer& model_;
  const ParameterLayout& layout_;
  const float* parameters_;
  float* gradients_;
  const Activations* activations_ = nullptr;  ///< While run() runs, and their rows:
  std::int64_t rows_ = 0;
};

}  // namespace hdpsim::kernels::exec
