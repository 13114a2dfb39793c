#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/exec/impl/activations.h"
#include "kernels/exec/impl/dense_kernels.h"
#include "kernels/exec/impl/expert_mixture.h"
#include "kernels/exec/impl/layer_kinds.h"
#include "kernels/exec/impl/layer_mixing.h"
#include "kernels/exec/parameter_tensors.h"
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
/// or, by the kind of the layer, q, k and v through latents (latent_inputs()), and in place of mlp a mixture of experts
/// (ExpertMixture), beside the shared experts, which are an mlp;
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
  /// memory. `devices` are those of the HDP rank, and `mixing` is told which micro-batch it works for.
  Dense(Backend& backend, Transport& devices, const Transformer& model, const ParameterLayout& layout,
        const void* parameters, float* gradients, LayerMixing& mixing)
      : backend_(backend),
        devices_(devices),
        model_(shard_of(model, {devices.rank(), devices.size()})),
        kinds_(model, {devices.rank(), devices.size()}),
        layout_(layout),
        kernels_(backend, parameters, gradients),
        mixing_(mixing) {}

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
  [[nodiscard]] NormShape own_tokens() const { return {rows_.own, model_.hidden}; }
  void rotate(void* q, void* kv, const std::int32_t* positions, bool inverse);
  /// Adds own rows.
  void add(const void* a, const void* b, void* y);
  /// Sums the device's own rows of `partial`, [G, h], over the devices into `sum`, [S, h], which may be those rows.
  void sum_over_devices(const void* partial, void* sum);

  using Kernels = void (Dense::*)(DensePart);
  /// What runs a part: forward; backward; and its second pass, if backward has two, with what the first has left. Null
  /// where there is nothing to run it.
  struct PartKernels {
    DensePart part;
    Kernels forward;
    Kernels backward;
    Kernels weights;
  };
  static const PartKernels& kernels_of(DensePart part);
  void run(DensePart part, Direction direction);

  void nothing(DensePart) {}
  template <auto Part>
  void of_experts(DensePart) {
    (ExpertMixture(work()).*Part)();
  }
  template <auto Part>
  void of_mixing(DensePart) {
    (mixing_.*Part)(work());
  }
  void embed(DensePart);
  void embed_back(DensePart);
  void norm(DensePart part);
  /// Adds the gradient of the residual stream, if the norm is a layer's.
  void norm_back(DensePart part);
  void qkv(DensePart);
  void qkv_back(DensePart);
  void qkv_weights(DensePart);
  void attention_output(DensePart part);
  void attention_output_back(DensePart part);
  void attention_output_weights(DensePart part);
  void attention_residual(DensePart);
  void mlp(DensePart part);
  void mlp_activation(DensePart);
  void mlp_back(DensePart part);
  void mlp_weights(DensePart part);
  void mlp_residual(DensePart);
  void head(DensePart);
  void head_back(DensePart);
  void head_weights(DensePart);
  void cross_entropy(const float* log_sum_exp);
  /// Joins the log-sum-exps of all devices to those of the whole vocabulary.
  void join_log_sum_exp();

  /// A norm of the stream, of the device's own rows x; y is [G, h].
  struct Norm {
    const Tensor& weight;
    const void* x;
    void* y;
    float* inverse_rms;
  };
  [[nodiscard]] Norm norm_of(DensePart part) const;

  [[nodiscard]] bool is_alone() const { return devices_.size() == 1; }
  /// The device's own rows of a gathered buffer [G, h].
  [[nodiscard]] void* own_rows(void* gathered, const Rows& rows) const {
    return static_cast<std::byte*>(gathered) + bytes_of(devices_.rank() * rows.share * model_.hidden);
  }
  [[nodiscard]] std::size_t bytes_of(std::int64_t count) const { return kernels_.bytes_of(count); }
  [[nodiscard]] void* own(void* gathered) const { return own_rows(gathered, rows_); }
  /// The buffer for partial sums whose sum goes to `whole`.
  [[nodiscard]] void* partial(void* whole) const { return is_alone() ? whole : shared_.d_normed; }
  /// The shard with all of its layers of the kind of the layer.
  [[nodiscard]] const Transformer& kind() const { return kinds_.of(at_->layer); }
  [[nodiscard]] AttentionHeads heads() const { return heads_of(kind()); }
  [[nodiscard]] LayerWork work() { return {kernels_, kind(), tensors(), layer_, shared_}; }
  /// The buffer for the output of a layer.
  [[nodiscard]] void* output_of(std::int64_t layer) const;
  void begin(const Place& place);
  [[nodiscard]] const LayerTensors& tensors() const { return layout_.layers()[static_cast<std::size_t>(at_->layer)]; }
  [[nodiscard]] const Linear& product(DensePart part, std::size_t i = 0) const { return tensors().product(part, i); }
  // The rows of the QKV product: keys and values lie together, as the ring sends them.
  [[nodiscard]] Linear query() const { return product(DensePart::qkv).rows(0, query_width(heads())); }
  [[nodiscard]] Linear key_value() const {
    return product(DensePart::qkv).rows(query_width(heads()), kv_width(heads()));
  }
  [[nodiscard]] Linear to_vocabulary() const { return {model_.vocabulary, model_.hidden, layout_.head()}; }

  Backend& backend_;
  Transport& devices_;
  Transformer model_;  ///< The device's shard of the model.
  LayerKinds kinds_;
  const ParameterLayout& layout_;
  DenseKernels kernels_;
  LayerMixing& mixing_;
  // Set while it works:
  const Place* at_ = nullptr;
  Gradients which_ = Gradients::all;
  Rows rows_;
  LayerActivations layer_;
  SharedActivations shared_;
};

}  // namespace hdpsim::kernels::exec
