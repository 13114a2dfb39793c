#include "kernels/exec/impl/dense.h"

#include <array>

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
  for (const DensePart part : stretch.parts) run(part, stretch.direction);
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

const Dense::PartKernels& Dense::kernels_of(DensePart part) {
  using D = Dense;
  using Experts = ExpertMixture;
  using Mixing = LayerMixing;
  // The gradient of a sum is the gradient of each term, so that residuals have nothing to do in backward. The weights
  // of norms get their gradients in the first pass. Elements travel, and are not cast.
  constexpr Kernels nothing = &D::nothing;
  static constexpr auto all = std::to_array<PartKernels>({
      {DensePart::embedding, &D::embed, &D::embed_back, &D::embed_back},
      {DensePart::attention_norm, &D::norm, &D::norm_back, nothing},
      {DensePart::qkv, &D::qkv, &D::qkv_back, &D::qkv_weights},
      {DensePart::mixing, &D::of_mixing<&Mixing::mix>, &D::of_mixing<&Mixing::mix_back>, nothing},
      {DensePart::attention_output, &D::attention_output, &D::attention_output_back, &D::attention_output_weights},
      {DensePart::attention_residual, &D::attention_residual, nothing, nothing},
      {DensePart::mlp_norm, &D::norm, &D::norm_back, nothing},
      {DensePart::mlp, &D::mlp, &D::mlp_back, &D::mlp_weights},
      {DensePart::mlp_residual, &D::mlp_residual, nothing, nothing},
      {DensePart::final_norm, &D::norm, &D::norm_back, nothing},
      {DensePart::head, &D::head, &D::head_back, &D::head_weights},
      {DensePart::mlp_inner, nullptr, nullptr, nullptr},
      {DensePart::mlp_activation, &D::mlp_activation, nothing, nothing},
      {DensePart::shared_experts, &D::mlp, &D::mlp_back, nullptr},
      {DensePart::router, &D::of_experts<&Experts::router>, &D::of_experts<&Experts::router_back>, nullptr},
      {DensePart::to_latent, nullptr, nullptr, nullptr},
      {DensePart::copies, &D::of_experts<&Experts::copies>, &D::of_experts<&Experts::copies_back>, nullptr},
      {DensePart::sent_cast, nothing, nothing, nothing},
      {DensePart::experts, &D::of_experts<&Experts::experts>, &D::of_experts<&Experts::experts_back>, nullptr},
      {DensePart::expert_activation, &D::of_experts<&Experts::activation>, nullptr, nullptr},
      {DensePart::sum_of_copies, &D::of_experts<&Experts::sum_of_copies>, &D::of_experts<&Experts::sum_of_copies_back>,
       nullptr},
      {DensePart::from_latent, nullptr, nullptr, nullptr},
  });
  const PartKernels& found = all.at(static_cast<std::size_t>(part));
  HDPSIM_CHECK(found.part == part, "part {} is not in its place among the kernels of parts", static_cast<int>(part));
  return found;
}

void Dense::run(DensePart part, Direction direction) {
  const PartKernels& kernels = kernels_of(part);
  const Kernels backward = which_ == Gradients::weights ? kernels.weights : kernels.backward;
  const Kernels runs = direction == Direction::forward ? kernels.forward : backward;
  if (runs == nullptr) throw UnsupportedInput("the program has a part of a layer for which there are no kernels");
  (this->*runs)(part);
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
  void* const all = is_forward ? norm_of(op.part).y : shared_.d_x;
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

void Dense::embed(DensePart) {
  backend_.run(EmbeddingForward{.tokens = rows_.all,
                                .vocabulary = model_.vocabulary,
                                .width = model_.hidden,
                                .table = kernels_.parameter(layout_.embedding()),
                                .ids = shared_.ids,
                                .y = partial(output_of(-1))});
}

// Adding up its table's rows is the weight's gradient, and there is no other.
void Dense::embed_back(DensePart) {
  if (which_ == Gradients::inputs) return kernels_.leave(shared_.d_embedded, shared_.d_x, model_.hidden);
  backend_.run(EmbeddingBackward{.tokens = rows_.all,
                                 .vocabulary = model_.vocabulary,
                                 .width = model_.hidden,
                                 .ids = shared_.ids,
                                 .d_y = which_ == Gradients::weights ? shared_.d_embedded : shared_.d_x,
                                 .d_table = kernels_.gradient(layout_.embedding())});
}

// One product in two launches.
void Dense::qkv(DensePart) {
  if (kind().linear) return mixing_.inputs(work());
  if (kind().latent) return latent_inputs(work());
  kernels_.forward(query(), layer_.attention_normed, layer_.q);
  kernels_.forward(key_value(), layer_.attention_normed, layer_.kv);
  rotate(layer_.q, layer_.kv, shared_.positions, false);
}

void Dense::qkv_back(DensePart) {
  if (kind().linear) return mixing_.inputs_back(work());
  kernels_.cast(shared_.d_q, shared_.d_q_rounded, rows_.all * query_width(heads()), false);
  kernels_.cast(shared_.d_kv, shared_.d_kv_rounded, rows_.all * kv_width(heads()), false);
  if (kind().latent) return latent_inputs_back(work());
  rotate(shared_.d_q_rounded, shared_.d_kv_rounded, shared_.positions, true);
  kernels_.leave(layer_.d_q, shared_.d_q_rounded, query_width(heads()));
  kernels_.leave(layer_.d_kv, shared_.d_kv_rounded, kv_width(heads()));
  kernels_.backward(query(), layer_.attention_normed, shared_.d_q_rounded, shared_.d_normed);
  kernels_.backward(key_value(), layer_.attention_normed, shared_.d_kv_rounded, shared_.d_normed, true);
}

void Dense::qkv_weights(DensePart) {
  kernels_.weight_gradient(query(), layer_.attention_normed, layer_.d_q);
  kernels_.weight_gradient(key_value(), layer_.attention_normed, layer_.d_kv);
}

void Dense::attention_output(DensePart part) {
  if (kind().linear) mixing_.outputs(work());
  kernels_.forward(product(part), layer_.o, shared_.d_normed);
}

void Dense::attention_output_back(DensePart part) {
  kernels_.leave(layer_.d_middle, shared_.d_x, model_.hidden);
  kernels_.backward(product(part), layer_.o, shared_.d_x, shared_.d_o);
  if (kind().linear) mixing_.outputs_back(work());
}

void Dense::attention_output_weights(DensePart part) {
  kernels_.weight_gradient(product(part), layer_.o, layer_.d_middle);
}

Dense::Norm Dense::norm_of(DensePart part) const {
  if (part == DensePart::attention_norm) {
    return {tensors().norm(part), layer_.input, layer_.attention_normed, layer_.attention_inverse_rms};
  }
  if (part == DensePart::mlp_norm) {
    return {tensors().norm(part), layer_.middle, layer_.mlp_normed, layer_.mlp_inverse_rms};
  }
  HDPSIM_CHECK(part == DensePart::final_norm, "part {} is no norm of the stream", static_cast<int>(part));
  return {layout_.final_norm(), shared_.output, shared_.final_normed, shared_.final_inverse_rms};
}

void Dense::norm(DensePart part) {
  const Norm of = norm_of(part);
  kernels_.norm_forward(own_tokens(), of.weight, of.x, own(of.y), of.inverse_rms);
}

void Dense::norm_back(DensePart part) {
  const Norm of = norm_of(part);
  const bool ends_layers = part == DensePart::final_norm;
  void* const d = own(ends_layers ? shared_.d_x : shared_.d_normed);
  kernels_.norm_backward(own_tokens(), of.weight, of.x, of.inverse_rms, d);
  if (!ends_layers) add(own(shared_.d_x), d, own(shared_.d_x));
}

void Dense::attention_residual(DensePart) {
  add(layer_.input, own(shared_.d_normed), layer_.middle);
}

void Dense::mlp(DensePart part) {
  kernels_.forward(product(part, 0), layer_.mlp_normed, layer_.gate_up);
  kernels_.swiglu_forward(product(part, 1).in, layer_.gate_up, layer_.inner);
  kernels_.forward(product(part, 1), layer_.inner, shared_.d_normed);
}

void Dense::mlp_activation(DensePart) {
  const DensePart part = kind().moe ? DensePart::shared_experts : DensePart::mlp;
  kernels_.swiglu_forward(product(part, 1).in, layer_.gate_up, layer_.inner);
}

void Dense::mlp_back(DensePart part) {
  kernels_.leave(layer_.d_output, shared_.d_x, model_.hidden);
  kernels_.backward(product(part, 1), layer_.inner, shared_.d_x, shared_.d_inner);
  kernels_.swiglu_backward(product(part, 1).in, layer_.gate_up, shared_.d_inner);
  kernels_.backward(product(part, 0), layer_.mlp_normed, layer_.gate_up, shared_.d_normed,
                    part == DensePart::shared_experts);
}

void Dense::mlp_weights(DensePart part) {
  kernels_.weight_gradient(product(part, 1), layer_.inner, layer_.d_output);
  kernels_.weight_gradient(product(part, 0), layer_.mlp_normed, layer_.gate_up);
}

void Dense::mlp_residual(DensePart) {
  add(layer_.middle, own(shared_.d_normed), output_of(at_->layer));
}

// If the vocabulary is cut, the loss and the gradient need the sums of all devices.
void Dense::head(DensePart) {
  kernels_.forward(to_vocabulary(), shared_.final_normed, shared_.logits);
  if (is_alone()) return cross_entropy(nullptr);
  backend_.run(LogSumExp{.tokens = rows_.all,
                         .vocabulary = model_.vocabulary,
                         .logits = shared_.logits,
                         .result = shared_.log_sum_exp + devices_.rank() * rows_.all});
}

void Dense::head_back(DensePart) {
  if (!is_alone()) cross_entropy(shared_.log_sum_exp);
  kernels_.backward(to_vocabulary(), shared_.final_normed, shared_.logits, partial(shared_.d_x));
}

void Dense::head_weights(DensePart) {
  kernels_.weight_gradient(to_vocabulary(), shared_.final_normed, shared_.logits);
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
