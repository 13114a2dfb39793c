#include "kernels/exec/impl/activations.h"

namespace hdpsim::kernels::exec {
namespace {

constexpr std::int64_t alignment = 64;  // floats: 256 bytes, as allocations have it

// Hands out consecutive stretches from `base`; without one it only counts.
class Carver {
 public:
  explicit Carver(float* base) : base_(base) {}
  float* operator()(std::int64_t count) {
    float* const begin = base_ == nullptr ? nullptr : base_ + used_;
    used_ += (count + alignment - 1) / alignment * alignment;
    return begin;
  }
  [[nodiscard]] std::int64_t used() const { return used_; }

 private:
  float* base_;
  std::int64_t used_ = 0;
};

}  // namespace

LayerActivations Activations::lay_out_layer(const Take& take) const {
  const std::int64_t hidden = rows_ * model_.hidden;
  const std::int64_t query = rows_ * model_.heads * model_.head_dim;
  const std::int64_t kv = rows_ * 2 * model_.kv_heads * model_.head_dim;
  const std::int64_t inner = rows_ * model_.ffn_hidden;
  return {.input = take(hidden),
          .attention_inverse_rms = take(rows_),
          .attention_normed = take(hidden),
          .q = take(query),
          .kv = take(kv),
          .o = take(query),
          .lse = take(rows_ * model_.heads),
          .middle = take(hidden),
          .mlp_inverse_rms = take(rows_),
          .mlp_normed = take(hidden),
          .gate_up = take(2 * inner),
          .inner = take(inner)};
}

SharedActivations Activations::lay_out_shared(const Take& take) const {
  const std::int64_t hidden = rows_ * model_.hidden;
  const std::int64_t query = rows_ * model_.heads * model_.head_dim;
  static_assert(sizeof(std::int32_t) == sizeof(float));
  const auto take_ids = [&] { return reinterpret_cast<std::int32_t*>(take(rows_)); };
  return {.ids = take_ids(),
          .targets = take_ids(),
          .positions = take_ids(),
          .output = take(hidden),
          .final_inverse_rms = take(rows_),
          .final_normed = take(hidden),
          .logits = take(rows_ * model_.vocabulary),
          .loss = take(rows_),
          .d_x = take(hidden),
          .d_normed = take(hidden),
          .d_inner = take(rows_ * model_.ffn_hidden),
          .d_o = take(query),
          .d_q = take(query),
          .d_kv = take(rows_ * 2 * model_.kv_heads * model_.head_dim)};
}

void Activations::begin(const Share& share) {
  rows_ = share.rows();
  Carver layer(nullptr);
  (void)lay_out_layer(std::ref(layer));
  layer_floats_ = layer.used();
  Carver all(nullptr);
  (void)lay_out_shared(std::ref(all));
  const std::int64_t needed = model_.layers * layer_floats_ + all.used();
  if (needed > capacity_) {
    backend_.synchronize();
    memory_.reset();
    memory_ = backend_.allocate(static_cast<std::size_t>(needed) * sizeof(float));
    capacity_ = needed;
  }
  Carver shared(static_cast<float*>(memory_.get()) + model_.layers * layer_floats_);
  shared_ = lay_out_shared(std::ref(shared));
  const std::size_t bytes = share.ids.size() * sizeof(std::int32_t);
  backend_.upload(shared_.ids, share.ids.data(), bytes);
  backend_.upload(shared_.targets, share.targets.data(), bytes);
  backend_.upload(shared_.positions, share.positions.data(), bytes);
}

LayerActivations Activations::layer(std::int64_t index) const {
  Carver carver(static_cast<float*>(memory_.get()) + index * layer_floats_);
  return lay_out_layer(std::ref(carver));
}

}  // namespace hdpsim::kernels::exec
