#include "kernels/exec/impl/dense.h"

namespace hdpsim::kernels::exec {
namespace {

constexpr double rotation_base =
    10000;  // what Llama starts from; model files may say otherwise, sim/model does not ask

}  // namespace

void Dense::run(const LinearPart& part, std::int64_t layer, const Activations& activations, float loss_scale) {
  activations_ = &activations;
  rows_ = activations.rows();
  if (rows_ == 0) return;
  const bool is_forward = part.direction == Direction::forward;
  switch (part.part) {
    case DensePart::embedding:
      return is_forward ? embed() : embed_back();
    case DensePart::before_attention:
      return is_forward ? before_attention(layer) : before_attention_back(layer);
    case DensePart::after_attention:
      return is_forward ? after_attention(layer) : after_attention_back(layer);
    case DensePart::output_head:
      return is_forward ? head(loss_scale) : head_back();
  }
}

void Dense::forward(const Linear& linear, const float* x, float* y) {
  backend_.run(MatrixProduct{.m = rows_,
                             .n = linear.out,
                             .k = linear.in,
                             .a = x,
                             .b = parameter(linear.weight),
                             .c = y,
                             .b_transposed = true});
}

void Dense::backward(const Linear& linear, const float* x, const float* d_y, float* d_x, bool add) {
  backend_.run(MatrixProduct{.m = rows_,
                             .n = linear.in,
                             .k = linear.out,
                             .a = d_y,
                             .b = parameter(linear.weight),
                             .c = d_x,
                             .beta = add ? 1.0F : 0.0F});
  backend_.run(MatrixProduct{.m = linear.out,
                             .n = linear.in,
                             .k = rows_,
                             .a = d_y,
                             .b = x,
                             .c = gradient(linear.weight),
                             .a_transposed = true,
                             .fp32_result = true,
                             .beta = 1});
}

void Dense::norm_forward(const Tensor& weight, const float* x, float* y, float* inverse_rms) {
  backend_.run(RmsNormForward{.tokens = rows_,
                              .width = model_.hidden,
                              .x = x,
                              .weight = parameter(weight),
                              .y = y,
                              .inverse_rms = inverse_rms});
}

void Dense::norm_backward(const Tensor& weight, const float* x, const float* inverse_rms, float* d) {
  backend_.run(RmsNormBackward{.tokens = rows_,
                               .width = model_.hidden,
                               .x = x,
                               .weight = parameter(weight),
                               .inverse_rms = inverse_rms,
                               .d_y = d,
                               .d_x = d,
                               .d_weight = gradient(weight)});
}

void Dense::rotate(float* q, float* kv, const std::int32_t* positions, bool inverse) {
  Rope rope{.tokens = rows_,
            .heads = model_.heads,
            .dim = model_.head_dim,
            .stride = query_width(),
            .base = rotation_base,
            .inverse = inverse,
            .x = q,
            .positions = positions};
  backend_.run(rope);
  rope.heads = model_.kv_heads;
  rope.stride = kv_width();
  rope.x = kv;  // the keys; the values behind them are not rotated
  backend_.run(rope);
}

void Dense::add(const float* a, const float* b, float* y) {
  backend_.run(Add{.count = rows_ * model_.hidden, .a = a, .b = b, .y = y, .fp32 = true});
}

float* Dense::output_of(std::int64_t layer) const {
  return layer + 1 < model_.layers ? activations_->layer(layer + 1).input : activations_->shared().output;
}

void Dense::embed() {
  backend_.run(EmbeddingForward{.tokens = rows_,
                                .vocabulary = model_.vocabulary,
                                .width = model_.hidden,
                                .table = parameter(layout_.embedding()),
                                .ids = activations_->shared().ids,
                                .y = output_of(-1)});
}

void Dense::embed_back() {
  backend_.run(EmbeddingBackward{.tokens = rows_,
                                 .vocabulary = model_.vocabulary,
                                 .width = model_.hidden,
                                 .ids = activations_->shared().ids,
                                 .d_y = activations_->shared().d_x,
                                 .d_table = gradient(layout_.embedding())});
}

void Dense::before_attention(std::int64_t layer) {
  const LayerActivations a = activations_->layer(layer);
  norm_forward(tensors(layer).attention_norm, a.input, a.attention_normed, a.attention_inverse_rms);
  // One product in two launches: keys and values lie together, as the ring sends them.
  forward(qkv_query(layer), a.attention_normed, a.q);
  forward(qkv_key_value(layer), a.attention_normed, a.kv);
  rotate(a.q, a.kv, activations_->shared().positions, false);
}

void Dense::before_attention_back(std::int64_t layer) {
  const LayerActivations a = activations_->layer(layer);
  const SharedActivations& s = activations_->shared();
  rotate(s.d_q, s.d_kv, s.positions, true);
  backward(qkv_query(layer), a.attention_normed, s.d_q, s.d_normed);
  backward(qkv_key_value(layer), a.attention_normed, s.d_kv, s.d_normed, true);
  norm_backward(tensors(layer).attention_norm, a.input, a.attention_inverse_rms, s.d_normed);
  add(s.d_x, s.d_normed, s.d_x);
}

void Dense::after_attention(std::int64_t layer) {
  const LayerActivations a = activations_->layer(layer);
  float* const d = activations_->shared().d_normed;  // forward has no use for it otherwise
  forward(output(layer), a.o, d);
  add(a.input, d, a.middle);
  norm_forward(tensors(layer).mlp_norm, a.middle, a.mlp_normed, a.mlp_inverse_rms);
  forward(gate_up(layer), a.mlp_normed, a.gate_up);
  backend_.run(SwigluForward{.tokens = rows_, .width = model_.ffn_hidden, .gate_up = a.gate_up, .y = a.inner});
  forward(down(layer), a.inner, d);
  add(a.middle, d, output_of(layer));
}

void Dense::after_attention_back(std::int64_t layer) {
  const LayerActivations a = activations_->layer(layer);
  const SharedActivations& s = activations_->shared();
  backward(down(layer), a.inner, s.d_x, s.d_inner);
  backend_.run(SwigluBackward{
      .tokens = rows_, .width = model_.ffn_hidden, .gate_up = a.gate_up, .d_y = s.d_inner, .d_gate_up = a.gate_up});
  backward(gate_up(layer), a.mlp_normed, a.gate_up, s.d_normed);
  norm_backward(tensors(layer).mlp_norm, a.middle, a.mlp_inverse_rms, s.d_normed);
  add(s.d_x, s.d_normed, s.d_x);
  backward(output(layer), a.o, s.d_x, s.d_o);
}

void Dense::head(float loss_scale) {
  const SharedActivations& s = activations_->shared();
  norm_forward(layout_.final_norm(), s.output, s.final_normed, s.final_inverse_rms);
  forward(to_vocabulary(), s.final_normed, s.logits);
  backend_.run(CrossEntropy{.tokens = rows_,
                            .vocabulary = model_.vocabulary,
                            .scale = loss_scale,
                            .logits = s.logits,
                            .targets = s.targets,
                            .loss = s.loss});
}

void Dense::head_back() {
  const SharedActivations& s = activations_->shared();
  backward(to_vocabulary(), s.final_normed, s.logits, s.d_x);
  norm_backward(layout_.final_norm(), s.output, s.final_inverse_rms, s.d_x);
}

}  // namespace hdpsim::kernels::exec
