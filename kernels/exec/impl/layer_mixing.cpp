#include "kernels/exec/impl/layer_mixing.h"

#include <cmath>

#include "sim/model/shares.h"

namespace hdpsim::kernels::exec {
namespace {

LinearHeads heads_of(const LinearMixing& mixing) {
  return {mixing.heads, mixing.key_heads, mixing.key_dim, mixing.value_dim};
}

std::vector<float> log_decays(std::int64_t heads) {
  std::vector<float> decays;
  for (std::int64_t head = 1; head <= heads; ++head) {
    decays.push_back(-std::exp2(-8 * static_cast<float>(head) / static_cast<float>(heads)));
  }
  return decays;
}

/// The sizes of a layer, and its linear layers.
struct Sizes {
  explicit Sizes(const LayerWork& work)
      : width(output_width(work.kind)),
        rows(work.kernels.rows().all),
        qkv(work.tensors.product(DensePart::qkv).rows(0, 3 * width)),
        gate(work.tensors.product(DensePart::qkv).rows(3 * width, width)) {}
  std::int64_t width;  ///< Columns of all heads.
  std::int64_t rows;
  Linear qkv;
  Linear gate;
  [[nodiscard]] NormShape norm() const { return {rows, width}; }
};

// The j-th of three tensors whose rows lie side by side.
template <class T>
T* third(T* rows, const Sizes& sizes, std::int64_t j) {
  return rows + j * sizes.width;
}

}  // namespace

bool is_lightning(const LinearMixing& mixing) {
  const std::int64_t columns = mixing.heads * mixing.value_dim;
  return mixing.key_heads == mixing.heads && mixing.key_dim == mixing.value_dim && mixing.chunk > 1 &&
         mixing.inputs == 4 * columns && mixing.convolved == 0 && mixing.step_rank == 0 && !mixing.delta_rule &&
         mixing.parameters == columns;
}

void LayerMixing::join(const Share& share) {
  share_ = &share;
  kind_.reset();
}

void LayerMixing::take(const Transformer& kind) {
  if (kind_ == *kind.linear) return;
  kind_ = *kind.linear;
  shared_.join({&share_->cut, &share_->group, share_->place}, whole_documents(share_->local, share_->shared_rows()),
               heads_of(*kind.linear), log_decays(kind.linear->heads));
}

void LayerMixing::inputs(const LayerWork& work) {
  const Sizes sizes(work);
  const LayerActivations& layer = work.layer;
  work.kernels.forward(sizes.qkv, layer.attention_normed, layer.mixing_inputs);
  work.kernels.backend().run(
      SiluForward{.count = sizes.rows * sizes.qkv.out, .x = layer.mixing_inputs, .y = layer.mixing_qkv});
  work.kernels.forward(sizes.gate, layer.attention_normed, layer.mixing_gate);
}

void LayerMixing::mix(const LayerWork& work) {
  const Sizes sizes(work);
  take(work.kind);
  const auto* const qkv = static_cast<const float*>(work.layer.mixing_qkv);
  const MixingForward op{.q = qkv,
                         .k = third(qkv, sizes, 1),
                         .v = third(qkv, sizes, 2),
                         .stride = sizes.qkv.out,
                         .o = work.layer.mixing_output,
                         .chunk_states = work.layer.chunk_states};
  shared_.forward(op);
  under_way_ = op;
}

void LayerMixing::finish() {
  std::visit([&](const auto& op) { shared_.finish(op); }, under_way_);
}

void LayerMixing::outputs(const LayerWork& work) {
  const Sizes sizes(work);
  const LayerActivations& layer = work.layer;
  work.kernels.norm_forward(sizes.norm(), work.tensors.norm(DensePart::mixing), layer.mixing_output,
                            layer.mixing_normed, layer.mixing_inverse_rms);
  work.kernels.backend().run(GateForward{
      .count = sizes.rows * sizes.width, .gate = layer.mixing_gate, .x = layer.mixing_normed, .y = layer.o});
}

void LayerMixing::outputs_back(const LayerWork& work) {
  const Sizes sizes(work);
  const LayerActivations& layer = work.layer;
  const SharedActivations& shared = work.shared;
  work.kernels.backend().run(GateBackward{.count = sizes.rows * sizes.width,
                                          .gate = layer.mixing_gate,
                                          .x = layer.mixing_normed,
                                          .d_y = shared.d_o,
                                          .d_gate = shared.d_mixing_gate,
                                          .d_x = shared.d_o});
  work.kernels.norm_backward(sizes.norm(), work.tensors.norm(DensePart::mixing), layer.mixing_output,
                             layer.mixing_inverse_rms, shared.d_o);
}

void LayerMixing::mix_back(const LayerWork& work) {
  const Sizes sizes(work);
  take(work.kind);
  const auto* const qkv = static_cast<const float*>(work.layer.mixing_qkv);
  float* const d_qkv = work.shared.d_mixing;
  const MixingBackward op{.q = qkv,
                          .k = third(qkv, sizes, 1),
                          .v = third(qkv, sizes, 2),
                          .stride = sizes.qkv.out,
                          .d_o = work.shared.d_o,
                          .chunk_states = work.layer.chunk_states,
                          .d_q = d_qkv,
                          .d_k = third(d_qkv, sizes, 1),
                          .d_v = third(d_qkv, sizes, 2)};
  shared_.backward(op);
  under_way_ = op;
}

void LayerMixing::inputs_back(const LayerWork& work) {
  const Sizes sizes(work);
  const LayerActivations& layer = work.layer;
  const SharedActivations& shared = work.shared;
  work.kernels.backend().run(SiluBackward{
      .count = sizes.rows * sizes.qkv.out, .x = layer.mixing_inputs, .d_y = shared.d_mixing, .d_x = shared.d_mixing});
  work.kernels.backward(sizes.qkv, layer.attention_normed, shared.d_mixing, shared.d_normed);
  work.kernels.backward(sizes.gate, layer.attention_normed, shared.d_mixing_gate, shared.d_normed, true);
}

}  // namespace hdpsim::kernels::exec
