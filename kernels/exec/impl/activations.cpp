#include "kernels/exec/impl/activations.h"

#include <algorithm>
#include <vector>

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

Rows rows_of(std::int64_t all, const TensorShard& shard) {
  Rows rows{.all = all};
  rows.share = (all + shard.devices - 1) / shard.devices;
  rows.padded = rows.share * shard.devices;
  rows.begin = std::min(all, rows.share * shard.index);
  rows.own = std::min(rows.share, all - rows.begin);
  return rows;
}

}  // namespace

LayerActivations Activations::lay_out_layer(const Take& take) const {
  const std::int64_t own = rows_.share * model_.hidden;
  const std::int64_t gathered = rows_.padded * model_.hidden;
  const std::int64_t query = rows_.all * model_.heads * model_.head_dim;
  const std::int64_t kv = rows_.all * 2 * model_.kv_heads * model_.head_dim;
  const std::int64_t inner = rows_.all * model_.ffn_hidden;
  return {.input = take(own),
          .attention_inverse_rms = take(rows_.share),
          .attention_normed = take(gathered),
          .q = take(query),
          .kv = take(kv),
          .o = take(query),
          .lse = take(rows_.all * model_.heads),
          .middle = take(own),
          .mlp_inverse_rms = take(rows_.share),
          .mlp_normed = take(gathered),
          .gate_up = take(2 * inner),
          .inner = take(inner)};
}

SharedActivations Activations::lay_out_shared(const Take& take) const {
  const std::int64_t own = rows_.share * model_.hidden;
  const std::int64_t gathered = rows_.padded * model_.hidden;
  const std::int64_t query = rows_.all * model_.heads * model_.head_dim;
  static_assert(sizeof(std::int32_t) == sizeof(float));
  const auto take_ids = [&] { return reinterpret_cast<std::int32_t*>(take(rows_.all)); };
  return {.ids = take_ids(),
          .targets = take_ids(),
          .positions = take_ids(),
          .output = take(own),
          .final_inverse_rms = take(rows_.share),
          .final_normed = take(gathered),
          .logits = take(rows_.all * model_.vocabulary),
          .log_sum_exp = take(shard_.devices * rows_.all),
          .loss = take(rows_.all),
          .d_x = take(gathered),
          .d_normed = take(gathered),
          .d_inner = take(rows_.all * model_.ffn_hidden),
          .d_o = take(query),
          .d_q = take(query),
          .d_kv = take(rows_.all * 2 * model_.kv_heads * model_.head_dim)};
}

void Activations::begin(const Share& share) {
  rows_ = rows_of(share.rows(), shard_);
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
  upload_tokens(share);
}

void Activations::upload_tokens(const Share& share) {
  const auto here = [&](std::int32_t id, std::int64_t elsewhere) {
    const std::int64_t place = id - first_of_vocabulary_;
    const bool is_here = id >= 0 && place >= 0 && place < model_.vocabulary;
    return static_cast<std::int32_t>(is_here ? place : elsewhere);
  };
  std::vector<std::int32_t> ids = share.ids;
  std::vector<std::int32_t> targets = share.targets;
  if (shard_.devices > 1) {
    for (std::int32_t& id : ids) id = here(id, -1);
    for (std::int32_t& target : targets) target = here(target, target < 0 ? -1 : model_.vocabulary);
  }
  const std::size_t bytes = ids.size() * sizeof(std::int32_t);
  backend_.upload(shared_.ids, ids.data(), bytes);
  backend_.upload(shared_.targets, targets.data(), bytes);
  backend_.upload(shared_.positions, share.positions.data(), bytes);
}

LayerActivations Activations::layer(std::int64_t index) const {
  Carver carver(static_cast<float*>(memory_.get()) + index * layer_floats_);
  return lay_out_layer(std::ref(carver));
}

}  // namespace hdpsim::kernels::exec
