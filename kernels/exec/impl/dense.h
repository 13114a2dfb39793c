#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/exec/impl/activations.h"
#include "kernels/exec/parameters.h"
#include "kernels/spec/backend.h"
#include "kernels/transport/transport.h"
#include "sim/model/transformer.h"
#include "sim/model/work.h"
#include "sim/program/instruction.h"

namespace hdpsim::kernels::exec {

/// The dense parts of a transformer on one device, as Llama computes them:
///   embedding           x = table[ids]
///   attention_norm      n = norm(x)
///   qkv                 q, k, v = n W_qkv^T; q and k rotated by their positions
///   attention_output    p = o W_o^T
///   attention_residual  m = x + p
///   mlp_norm            n = norm(m)
///   mlp                 p = (silu(g) u) W_down^T with g, u = n W_gate_up^T
///   mlp_activation      of mlp, silu(g) u again
///   mlp_residual        x' = m + p
///   final_norm, head    logits = norm(x) W_head^T, the loss and the gradient of the logits
/// and the gradients of all that, between tensors of the backend's element; sums of products and gradients of
/// parameters, which are added to, are fp32. In a pipeline a device runs the parts that its stage has.
///
/// Under tensor parallelism weights are cut as ParameterLayout has them: x, m and the results of norms are rows of the
/// device's own until they are gathered, p and the gradients of n partial sums until they are reduced, which
/// collective() does. A device knows the loss of the tokens whose targets are in its part of the vocabulary, 0 for the
/// others.
class Dense {
 public:
  /// `layout` is that of the device; `parameters` and `gradients` have layout.count() numbers each, in the backend's
  /// memory. `devices` are those of the HDP rank.
  Dense(Backend& backend, Transport& devices, const Transformer& model, const ParameterLayout& layout,
        const void* parameters, float* gradients)
      : backend_(backend),
        devices_(devices),
        model_(shard_of(model, {devices.rank(), devices.size()})),
        layout_(layout),
        parameters_(parameters),
        gradients_(gradients) {}

  /// The tensors on which parts work. `layer`, one of the chunk, is ignored by parts outside of layers; `loss_scale` is
  /// CrossEntropy's.
  struct Place {
    const Activations& activations;
    std::int64_t layer = 0;
    float loss_scale = 1;
  };
  void run(const LinearPart& stretch, const Place& place);
  void collective(const TensorParallelCollective& op, const Place& place);

  /// The buffers of messages to the next stage (forward) or the previous one (backward), and of messages from there:
  /// the device's own rows, [own, h], of the hidden states or of their gradient.
  [[nodiscard]] void* sent(const Activations& activations, Direction direction) const;
  [[nodiscard]] void* received(const Activations& activations, Direction direction) const;
  [[nodiscard]] std::size_t message_bytes(const Activations& activations) const;

 private:
  /// A linear layer of the model: y = x W^T, x [T, in], y [T, out].
  struct Linear {
    std::int64_t out = 0;
    std::int64_t in = 0;
    Tensor weight;
  };
  void forward(const Linear& linear, const void* x, void* y);
  /// d_x = d_y W (+ d_x, if `add`) and d_W += d_y^T x, if the stretch has both.
  void backward(const Linear& linear, const void* x, const void* d_y, void* d_x, bool add = false);
  void input_gradient(const Linear& linear, const void* d_y, void* d_x, bool add);
  void weight_gradient(const Linear& linear, const void* x, const void* d_y);
  /// Copies a gradient [T, width] to where the second part of backward looks for it, if this is the first one.
  void leave(void* place, const void* gradient, std::int64_t width);
  void norm_forward(const Tensor& weight, const void* x, void* y, float* inverse_rms);
  /// Works in place: d_y becomes d_x.
  void norm_backward(const Tensor& weight, const void* x, const float* inverse_rms, void* d);
  void rotate(void* q, void* kv, const std::int32_t* positions, bool inverse);
  /// Adds own rows.
  void add(const void* a, const void* b, void* y);
  /// Sums the device's own rows of `partial`, [G, h], over the devices into `sum`, [S, h], which may be those rows.
  void sum_over_devices(const void* partial, void* sum);
  void cast(const void* from, void* to, std::int64_t count, bool to_fp32);

  void forward(DensePart part);
  void backward(DensePart part);
  /// The second part of a backward in two, with what the first has left.
  void weights(DensePart part);
  void embed();
  void embed_back();
  void qkv();
  void qkv_back();
  void mlp();
  void mlp_activation();
  void mlp_back();
  void head();
  void head_back();
  /// The backward of a norm on the own rows, plus the gradient of the residual stream.
  void norm_of_layer_back(const Tensor& weight, const void* x, const float* inverse_rms);
  void cross_entropy(const float* log_sum_exp);
  /// Joins the log-sum-exps of all devices to those of the whole vocabulary.
  void join_log_sum_exp();
  [[nodiscard]] void* gathered(DensePart part) const;

  [[nodiscard]] bool is_alone() const { return devices_.size() == 1; }
  /// The device's own rows of a gathered buffer [G, h].
  [[nodiscard]] void* own_rows(void* gathered, const Rows& rows) const {
    return static_cast<std::byte*>(gathered) + bytes_of(devices_.rank() * rows.share * model_.hidden);
  }
  /// Bytes of `count` elements.
  [[nodiscard]] std::size_t bytes_of(std::int64_t count) const {
    return static_cast<std::size_t>(count) * element_bytes(backend_.element());
  }
  [[nodiscard]] void* own(void* gathered) const { return own_rows(gathered, rows_); }
  /// The buffer for partial sums whose sum goes to `whole`.
  [[nodiscard]] void* partial(void* whole) const { return is_alone() ? whole : shared_.d_normed; }
  [[nodiscard]] std::int64_t query_width() const { return model_.heads * model_.head_dim; }
  [[nodiscard]] std::int64_t kv_width() const { return 2 * model_.kv_heads * model_.head_dim; }
  [[nodiscard]] const void* parameter(const Tensor& tensor) const {
    return static_cast<const std::byte*>(parameters_) + bytes_of(tensor.begin);
  }
  [[nodiscard]] float* gradient(const Tensor& tensor) const { return gradients_ + tensor.begin; }
  /// The buffer for the output of a layer.
  [[nodiscard]] void* output_of(std::int64_t layer) const;
  void begin(const Place& place);
  [[nodiscard]] const LayerTensors& tensors() const { return layout_.layers()[static_cast<std::size_t>(at_->layer)]; }
  [[nodiscard]] Linear qkv_query() const { return {query_width(), model_.hidden, tensors().query}; }
  [[nodiscard]] Linear qkv_key_value() const { return {kv_width(), model_.hidden, tensors().key_value}; }
  [[nodiscard]] Linear output() const { return {model_.hidden, query_width(), tensors().output}; }
  [[nodiscard]] Linear gate_up() const { return {2 * model_.ffn_hidden, model_.hidden, tensors().gate_up}; }
  [[nodiscard]] Linear down() const { return {model_.hidden, model_.ffn_hidden, tensors().down}; }
  [[nodiscard]] Linear to_vocabulary() const { return {model_.vocabulary, model_.hidden, layout_.head()}; }

  Backend& backend_;
  Transport& devices_;
  Transformer model_;  ///< The device's shard of the model.
  const ParameterLayout& layout_;
  const void* parameters_;
  float* gradients_;
  // Set while it works:
  const Place* at_ = nullptr;
  Gradients which_ = Gradients::all;
  Rows rows_;
  LayerActivations layer_;
  SharedActivations shared_;
};

}  // namespace hdpsim::kernels::exec
