#include "sim/model/weight_matrices.h"

#include <utility>

#include "sim/model/layers.h"
#include "sim/model/shares.h"

namespace hdpsim {
namespace {

class Matrices {
 public:
  Matrices(const Transformer& layer, std::int64_t tp, std::int64_t ep) : layer_(layer), tp_(tp), ep_(ep) {}

  std::vector<WeightMatrix> run() {
    if (mixes_tokens(layer_)) attention();
    if (has_mlp(layer_)) layer_.moe ? experts(*layer_.moe) : mlp(layer_.ffn_hidden);
    return std::move(list_);
  }

 private:
  void attention() {
    if (layer_.joins) add(divided(layer_.hidden, tp_), 2 * layer_.hidden);
    if (layer_.linear) {
      mixing(*layer_.linear);
    } else if (layer_.latent) {
      latents(*layer_.latent);
    } else {
      add(divided(query_width(layer_) * (layer_.gated_output ? 2 : 1), tp_), layer_.hidden);
      add(divided(key_width(layer_), tp_), layer_.hidden);
      add(divided(value_width(layer_), tp_), layer_.hidden);
    }
    part_ = WeightPart::projection;
    add(layer_.hidden, divided(output_width(layer_), tp_));
  }

  // A state space of selected steps (Gu and Dao 2023, section 3.2) makes them, its inputs and its outputs of each
  // token.
  void mixing(const LinearMixing& linear) {
    add(divided(linear.inputs, tp_), layer_.hidden);
    if (linear.step_rank == 0) return;
    const std::int64_t inner = divided(output_width(layer_), tp_);
    add(linear.step_rank + 2 * linear.key_dim, inner);
    add(inner, linear.step_rank);
  }

  void latents(const LatentAttention& latent) {
    const std::int64_t queries = divided(query_width(layer_), tp_);
    if (latent.query_rank > 0) add(latent.query_rank, layer_.hidden);
    add(queries, latent.query_rank > 0 ? latent.query_rank : layer_.hidden);
    add(latent.kv_rank + latent.rotated, layer_.hidden);
    add(divided(layer_.heads * (layer_.head_dim - latent.rotated + value_dim(layer_)), tp_), latent.kv_rank);
    if (!scores_keys(layer_)) return;
    add(layer_.indexer->heads * layer_.indexer->head_dim, latent.query_rank > 0 ? latent.query_rank : layer_.hidden);
    add(layer_.indexer->head_dim, layer_.hidden);
    add(layer_.indexer->heads, layer_.hidden);
  }

  void mlp(std::int64_t inner) {
    part_ = WeightPart::mlp;
    pair(divided(inner, tp_), layer_.hidden, 1);
  }

  void experts(const MixtureOfExperts& moe) {
    part_ = WeightPart::mlp;
    add(moe.experts, layer_.hidden);
    if (moe.shared_gate) add(1, layer_.hidden);
    if (moe.latent > 0) {
      add(moe.latent, layer_.hidden);
      add(layer_.hidden, moe.latent);
    }
    if (moe.shared_hidden > 0) mlp(moe.shared_hidden);
    part_ = WeightPart::experts;
    whole_experts_ = ep_ > 1;
    pair(whole_experts_ ? moe.expert_hidden : divided(moe.expert_hidden, tp_), copy_width(layer_),
         whole_experts_ ? moe.experts / ep_ : moe.experts);
  }

  // What reads a row of `width` and what writes one.
  void pair(std::int64_t inner, std::int64_t width, std::int64_t count) {
    add(inner * (layer_.gated_mlp ? 2 : 1), width, count);
    add(width, inner, count);
  }

  void add(std::int64_t rows, std::int64_t columns, std::int64_t count = 1) {
    list_.push_back({rows, columns, part_, count, whole_experts_});
  }

  const Transformer& layer_;
  std::int64_t tp_;
  std::int64_t ep_;
  WeightPart part_ = WeightPart::inputs;  ///< Of what is added.
  bool whole_experts_ = false;
  std::vector<WeightMatrix> list_;
};

}  // namespace

std::vector<WeightMatrix> weight_matrices(const Transformer& layer, std::int64_t tp, std::int64_t ep) {
  return Matrices(layer, tp, ep).run();
}

}  // namespace hdpsim
