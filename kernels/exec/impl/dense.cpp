#include "kernels/exec/impl/dense.h"

#include "kernels/exec/impl/latent_inputs.h"
#include "kernels/spec/error.h"
#include "sim/base/check.h"

namespace hdpsim::kernels::exec {

void Dense::begin(const Place& place) {
  at_ = &place;
  rows_ = place.activations.rows();
  layer_ = place.activations.layer(place.layer);
  shared_ = place.activations.shared();
}

void Dense::run(const LinearPart& stretch, const Place& place) {
  begin(place);
  if (rows_.all == 0) return;
  which_ = stretch.gradients;
  kernels_.begin(rows_, which_);
  for (const DensePart part : stretch.parts) {
    if (stretch.direction == Direction::forward) {
      forward(part);
    } else {
      which_ == Gradients::weights ? weights(part) : backward(part);
    }
  }
}

void* Dense::sent(const Activations& activations, Direction direction) const {
  const SharedActivations shared = activations.shared();
  return direction == Direction::forward ? shared.output : own_rows(shared.d_x, activations.rows());
}

void* Dense::received(const Activations& activations, Direction direction) const {
  if (direction == Direction::forward) return activations.layer(activations.chunk().layers.first).input;
  return own_rows(activations.shared().d_x, activations.rows());
}

std::size_t Dense::message_bytes(const Activations& activations) const {
  return static_cast<std::size_t>(activations.rows().own * model_.hidden) * element_bytes(backend_.element());
}

void Dense::forward(DensePart part) {
  const LayerActivations& layer = layer_;
  const SharedActivations& shared = shared_;
  switch (part) {
    case DensePart::embedding:
      return embed();
    case DensePart::attention_norm:
      return kernels_.norm_forward(own_tokens(), tensors().attention_norm, layer.input, own(layer.attention_normed),
                                   layer.attention_inverse_rms);
    case DensePart::qkv:
      return qkv();
    case DensePart::attention_output:
      if (kind().linear) mixing_.outputs(work());
      return kernels_.forward(output(), layer.o, shared.d_normed);
    case DensePart::attention_residual:
      return add(layer.input, own(shared.d_normed), layer.middle);
    case DensePart::mlp_norm:
      return kernels_.norm_forward(own_tokens(), tensors().mlp_norm, layer.middle, own(layer.mlp_normed),
                                   layer.mlp_inverse_rms);
    case DensePart::mlp:
      return mlp();
    case DensePart::mlp_activation:
      return mlp_activation();
    case DensePart::mlp_residual:
      return add(layer.middle, own(shared.d_normed), output_of(at_->layer));
    case DensePart::final_norm:
      return kernels_.norm_forward(own_tokens(), layout_.final_norm(), shared.output, own(shared.final_normed),
                                   shared.final_inverse_rms);
    case DensePart::head:
      return head();
    case DensePart::mlp_inner:
      throw UnsupportedInput("the MLP is computed as a whole");
    case DensePart::to_latent:
    case DensePart::from_latent:
      throw UnsupportedInput("experts work on hidden states");
    case DensePart::sent_cast:
      return;  // elements travel
    case DensePart::shared_experts:
      return mlp();
    case DensePart::router:
      return experts().router();
    case DensePart::copies:
      return experts().copies();
    case DensePart::experts:
      return experts().experts();
    case DensePart::expert_activation:
      return experts().activation();
    case DensePart::sum_of_copies:
      return experts().sum_of_copies();
    case DensePart::mixing:
      return mixing_.mix(work());
  }
}

void Dense::backward(DensePart part) {
  const LayerActivations& layer = layer_;
  const SharedActivations& shared = shared_;
  switch (part) {
    case DensePart::embedding:
      return embed_back();
    case DensePart::attention_norm:
      return norm_of_layer_back(tensors().attention_norm, layer.input, layer.attention_inverse_rms);
    case DensePart::qkv:
      return qkv_back();
    case DensePart::attention_output:
      kernels_.leave(layer.d_middle, shared.d_x, model_.hidden);
      kernels_.backward(output(), layer.o, shared.d_x, shared.d_o);
      return kind().linear ? mixing_.outputs_back(work()) : void();
    case DensePart::mlp_norm:
      return norm_of_layer_back(tensors().mlp_norm, layer.middle, layer.mlp_inverse_rms);
    case DensePart::mlp:
      return mlp_back(false);
    case DensePart::shared_experts:
      return mlp_back(true);
    case DensePart::router:
      return experts().router_back();
    case DensePart::copies:
      return experts().copies_back();
    case DensePart::experts:
      return experts().experts_back();
    case DensePart::sum_of_copies:
      return experts().sum_of_copies_back();
    case DensePart::to_latent:
    case DensePart::from_latent:
      throw UnsupportedInput("experts work on hidden states");
    case DensePart::sent_cast:
      return;  // elements travel
    case DensePart::expert_activation:
    case DensePart::attention_residual:
    case DensePart::mlp_inner:
    case DensePart::mlp_activation:
    case DensePart::mlp_residual:
      return;  // the gradient of a sum is the gradient of each term
    case DensePart::final_norm:
      return kernels_.norm_backward(own_tokens(), layout_.final_norm(), shared.output, shared.final_inverse_rms,
                                    own(shared.d_x));
    case DensePart::head:
      return head_back();
    case DensePart::mixing:
      return mixing_.mix_back(work());
  }
}

void Dense::weights(DensePart part) {
  switch (part) {
    case DensePart::embedding:
      return embed_back();
    case DensePart::qkv:
      kernels_.weight_gradient(qkv_query(), layer_.attention_normed, layer_.d_q);
      return kernels_.weight_gradient(qkv_key_value(), layer_.attention_normed, layer_.d_kv);
    case DensePart::attention_output:
      return kernels_.weight_gradient(output(), layer_.o, layer_.d_middle);
    case DensePart::mlp:
      kernels_.weight_gradient(down(), layer_.inner, layer_.d_output);
      return kernels_.weight_gradient(gate_up(), layer_.mlp_normed, layer_.gate_up);
    case DensePart::head:
      return kernels_.weight_gradient(to_vocabulary(), shared_.final_normed, shared_.logits);
    case DensePart::shared_experts:
    case DensePart::router:
    case DensePart::to_latent:
    case DensePart::copies:
    case DensePart::sent_cast:
    case DensePart::experts:
    case DensePart::expert_activation:
    case DensePart::sum_of_copies:
    case DensePart::from_latent:
      throw UnsupportedInput("the backward of experts is not computed in two parts");
    case DensePart::attention_norm:
    case DensePart::mixing:
    case DensePart::attention_residual:
    case DensePart::mlp_norm:
    case DensePart::mlp_inner:
    case DensePart::mlp_activation:
    case DensePart::mlp_residual:
    case DensePart::final_norm:
      return;  // no product: the first part has their gradients
  }
}

void Dense::collective(const TensorParallelCollective& op, const Place& place) {
  begin(place);
  if (rows_.all == 0) return;
  const bool is_forward = op.direction == Direction::forward;
  if (op.kind == CollectiveKind::reduce_scatter) {
    void* const forward_sum = op.part == DensePart::embedding ? output_of(-1) : own(shared_.d_normed);
    void* const backward_sum = own(op.part == DensePart::head ? shared_.d_x : shared_.d_normed);
    return sum_over_devices(shared_.d_normed, is_forward ? forward_sum : backward_sum);
  }
  if (is_forward && op.part == DensePart::head) return join_log_sum_exp();
  void* const all = is_forward ? gathered(op.part) : shared_.d_x;
  devices_.all_gather(own(all), all, bytes_of(rows_.share * model_.hidden));
}

// Partial sums are sent as elements, but summed in fp32: each device gets those of its rows and rounds once.
void Dense::sum_over_devices(const void* partial, void* sum) {
  const std::int64_t share = rows_.share * model_.hidden;
  if (backend_.element() == Element::fp32) {
    return devices_.reduce_scatter(static_cast<const float*>(partial), static_cast<float*>(sum),
                                   static_cast<std::size_t>(share));
  }
  devices_.all_to_all(partial, shared_.parts, bytes_of(share));
  float* const all = shared_.sum;
  float* const next = all + share;
  kernels_.cast(shared_.parts, all, share, true);
  for (int device = 1; device < devices_.size(); ++device) {
    kernels_.cast(static_cast<const std::byte*>(shared_.parts) + bytes_of(device * share), next, share, true);
    backend_.run(Add{.count = share, .a = all, .b = next, .y = all, .fp32 = true});
  }
  kernels_.cast(all, sum, share, false);
}

void* Dense::gathered(DensePart part) const {
  if (part == DensePart::attention_norm) return layer_.attention_normed;
  if (part == DensePart::mlp_norm) return layer_.mlp_normed;
  HDPSIM_CHECK(part == DensePart::final_norm, "the result of part {} is not gathered", static_cast<int>(part));
  return shared_.final_normed;
}

void Dense::join_log_sum_exp() {
  float* const all = shared_.log_sum_exp;
  devices_.all_gather(all + devices_.rank() * rows_.all, all, static_cast<std::size_t>(rows_.all) * sizeof(float));
  backend_.run(JoinLogSumExp{.tokens = rows_.all, .parts = devices_.size(), .partial = all, .result = all});
}

void Dense::rotate(void* q, void* kv, const std::int32_t* positions, bool inverse) {
  Rope rope{.tokens = rows_.all,
            .heads = heads().heads,
            .dim = heads().dim,
            .stride = query_width(heads()),
            .base = rotation_base,
            .inverse = inverse,
            .x = q,
            .positions = positions};
  backend_.run(rope);
  rope.heads = heads().kv_heads;
  rope.stride = kv_width(heads());
  rope.x = kv;  // the keys; the values behind them are not rotated
  backend_.run(rope);
}

void Dense::add(const void* a, const void* b, void* y) {
  backend_.run(Add{.count = rows_.own * model_.hidden, .a = a, .b = b, .y = y});
}

void* Dense::output_of(std::int64_t layer) const {
  const bool is_last = layer == at_->activations.chunk().last_layer();
  return is_last ? shared_.output : at_->activations.layer(layer + 1).input;
}

void Dense::embed() {
  backend_.run(EmbeddingForward{.tokens = rows_.all,
                                .vocabulary = model_.vocabulary,
                                .width = model_.hidden,
                                .table = kernels_.parameter(layout_.embedding()),
                                .ids = shared_.ids,
                                .y = partial(output_of(-1))});
}

// Adding up its table's rows is the weight's gradient, and there is no other.
void Dense::embed_back() {
  if (which_ == Gradients::inputs) return kernels_.leave(shared_.d_embedded, shared_.d_x, model_.hidden);
  backend_.run(EmbeddingBackward{.tokens = rows_.all,
                                 .vocabulary = model_.vocabulary,
                                 .width = model_.hidden,
                                 .ids = shared_.ids,
                                 .d_y = which_ == Gradients::weights ? shared_.d_embedded : shared_.d_x,
                                 .d_table = kernels_.gradient(layout_.embedding())});
}

// One product in two launches: keys and values lie together, as the ring sends them.
void Dense::qkv() {
  if (kind().linear) return mixing_.inputs(work());
  if (kind().latent) return latent_inputs(work());
  kernels_.forward(qkv_query(), layer_.attention_normed, layer_.q);
  kernels_.forward(qkv_key_value(), layer_.attention_normed, layer_.kv);
  rotate(layer_.q, layer_.kv, shared_.positions, false);
}

void Dense::qkv_back() {
  if (kind().linear) return mixing_.inputs_back(work());
  kernels_.cast(shared_.d_q, shared_.d_q_rounded, rows_.all * query_width(heads()), false);
  kernels_.cast(shared_.d_kv, shared_.d_kv_rounded, rows_.all * kv_width(heads()), false);
  if (kind().latent) return latent_inputs_back(work());
  rotate(shared_.d_q_rounded, shared_.d_kv_rounded, shared_.positions, true);
  kernels_.leave(layer_.d_q, shared_.d_q_rounded, query_width(heads()));
  kernels_.leave(layer_.d_kv, shared_.d_kv_rounded, kv_width(heads()));
  kernels_.backward(qkv_query(), layer_.attention_normed, shared_.d_q_rounded, shared_.d_normed);
  kernels_.backward(qkv_key_value(), layer_.attention_normed, shared_.d_kv_rounded, shared_.d_normed, true);
}

void Dense::mlp() {
  kernels_.forward(gate_up(), layer_.mlp_normed, layer_.gate_up);
  mlp_activation();
  kernels_.forward(down(), layer_.inner, shared_.d_normed);
}

void Dense::mlp_activation() {
  kernels_.swiglu_forward(inner_width(kind()), layer_.gate_up, layer_.inner);
}

void Dense::mlp_back(bool add) {
  kernels_.leave(layer_.d_output, shared_.d_x, model_.hidden);
  kernels_.backward(down(), layer_.inner, shared_.d_x, shared_.d_inner);
  kernels_.swiglu_backward(inner_width(kind()), layer_.gate_up, shared_.d_inner);
  kernels_.backward(gate_up(), layer_.mlp_normed, layer_.gate_up, shared_.d_normed, add);
}

void Dense::norm_of_layer_back(const Tensor& weight, const void* x, const float* inverse_rms) {
  void* const d = own(shared_.d_normed);
  kernels_.norm_backward(own_tokens(), weight, x, inverse_rms, d);
  add(own(shared_.d_x), d, own(shared_.d_x));
}

// If the vocabulary is cut, the loss and the gradient need the sums of all devices.
void Dense::head() {
  kernels_.forward(to_vocabulary(), shared_.final_normed, shared_.logits);
  if (is_alone()) return cross_entropy(nullptr);
  backend_.run(LogSumExp{.tokens = rows_.all,
                         .vocabulary = model_.vocabulary,
                         .logits = shared_.logits,
                         .result = shared_.log_sum_exp + devices_.rank() * rows_.all});
}

void Dense::head_back() {
  if (!is_alone()) cross_entropy(shared_.log_sum_exp);
  kernels_.backward(to_vocabulary(), shared_.final_normed, shared_.logits, partial(shared_.d_x));
}

void Dense::cross_entropy(const float* log_sum_exp) {
  backend_.run(CrossEntropy{.tokens = rows_.all,
                            .vocabulary = model_.vocabulary,
                            .scale = at_->loss_scale,
                            .logits = shared_.logits,
                            .targets = shared_.targets,
                            .loss = shared_.loss,
                            .log_sum_exp = log_sum_exp});
}

}  // namespace hdpsim::kernels::exec
