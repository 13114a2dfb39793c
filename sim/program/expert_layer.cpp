#include "sim/program/expert_layer.h"

#include <algorithm>
#include <utility>

#include "sim/model/shares.h"

namespace hdpsim {
namespace {

/// Writes the steps of one direction.
class LayerSteps {
 public:
  LayerSteps(const ExpertLayer& layer, Direction direction)
      : layer_(layer),
        model_(layer.model),
        direction_(direction),
        rows_(expert_rows(*layer.model.moe, layer.layout, layer.group)),
        own_tokens_((layer.tokens + layer.tp - 1) / layer.tp) {}

  std::vector<ExpertStep> activations() {
    const bool in_groups = layer_.layout.ep > 1;
    const std::int64_t cut = in_groups ? 1 : layer_.tp;
    const auto work = [&](const std::vector<std::int64_t>& rows) { return expert_activation_work(model_, rows, cut); };
    if (layer_.tokens > 0 && model_.moe->shared_hidden > 0) {
      steps_.emplace_back(shared_activation_work(model_, layer_.tokens, layer_.tp));
    }
    in_groups ? evenly(work(rows_.even), work(rows_.slowest)) : void(steps_.emplace_back(work(rows_.slowest)));
    return std::move(steps_);
  }

  std::vector<ExpertStep> run() {
    if (layer_.tokens == 0) {
      exchanged_experts();
    } else if (direction_ == Direction::forward) {
      shared_experts();
      steps_.emplace_back(router_work(model_, own_tokens_, direction_));
      routed_experts();
    } else {
      routed_experts();
      steps_.emplace_back(router_work(model_, own_tokens_, direction_));
      shared_experts();
    }
    return std::move(steps_);
  }

 private:
  void shared_experts() {
    if (model_.moe->shared_hidden == 0) return;
    gathered(CollectiveKind::all_gather, model_.hidden);
    steps_.emplace_back(shared_expert_work(model_, layer_.tokens, layer_.tp, direction_, layer_.format));
    gathered(CollectiveKind::reduce_scatter, model_.hidden);
  }

  // Tokens are narrow while they travel: the products to and from a latent stand where their own device has them.
  void routed_experts() {
    const bool has_latent = model_.moe->latent > 0;
    const bool is_forward = direction_ == Direction::forward;
    if (has_latent) latent_product(is_forward ? narrowing_work : widening_work);
    copied_experts();
    if (has_latent) latent_product(is_forward ? widening_work : narrowing_work);
  }

  void latent_product(LinearPart (*work)(const Transformer&, std::int64_t, Direction, const ExpertFormat&)) {
    steps_.emplace_back(work(model_, own_tokens_, direction_, layer_.format));
  }

  void copied_experts() {
    const bool is_forward = direction_ == Direction::forward;
    const DensePart first = is_forward ? DensePart::copies : DensePart::sum_of_copies;
    const DensePart last = is_forward ? DensePart::sum_of_copies : DensePart::copies;
    if (layer_.layout.ep > 1) {
      if (!is_per_node()) permutation(first, own_tokens_);
      if (layer_.layout.fp8_sent) steps_.emplace_back(sent_cast_work(model_, own_tokens_, direction_));
      exchanged_experts();
      if (!is_per_node()) permutation(last, own_tokens_);
    } else {
      gathered(CollectiveKind::all_gather, copy_width(model_));
      permutation(first, layer_.tokens);
      steps_.emplace_back(expert_work(model_, rows_.slowest, layer_.tp, false, direction_, layer_.format));
      permutation(last, layer_.tokens);
      gathered(CollectiveKind::reduce_scatter, copy_width(model_));
    }
  }

  void exchanged_experts() {
    ExpertFormat format = layer_.format;
    format.fp8_sent = layer_.layout.fp8_sent;
    const LinearPart even = expert_work(model_, rows_.even, 1, true, direction_, format);
    const LinearPart slowest = expert_work(model_, rows_.slowest, 1, true, direction_, format);
    steps_.emplace_back(
        ExchangedExperts{exchange(format.fp8_sent), exchange(false), even, wait_for(slowest, even), is_per_node()});
  }

  [[nodiscard]] bool is_per_node() const { return layer_.layout.dispatch == ExpertDispatch::per_node; }

  [[nodiscard]] TensorParallelCollective exchange(bool fp8) const {
    const auto bytes_of = is_per_node() ? token_exchange_bytes : expert_exchange_bytes;
    return {.kind = CollectiveKind::all_to_all,
            .bytes = bytes_of(model_, rows_, fp8),
            .part = DensePart::mlp,
            .direction = direction_,
            .among = CollectiveGroup::experts};
  }

  // Adds the work of an even share, and the wait for the device that has most rows.
  void evenly(const LinearPart& even, const LinearPart& slowest) {
    steps_.emplace_back(even);
    if (const auto wait = wait_for(slowest, even)) steps_.emplace_back(*wait);
  }

  [[nodiscard]] std::optional<ExpertWait> wait_for(const LinearPart& slowest, const LinearPart& even) const {
    if (rows_.slowest == rows_.even) return std::nullopt;
    return ExpertWait{slowest, even};
  }

  void permutation(DensePart part, std::int64_t tokens) {
    LinearPart work = permutation_work(model_, tokens, direction_);
    work.parts = {part};
    steps_.emplace_back(std::move(work));
  }

  void gathered(CollectiveKind kind, std::int64_t columns) {
    const Bytes bytes(layer_.tokens * columns * model_.element_bytes);
    steps_.emplace_back(TensorParallelCollective{kind, bytes, DensePart::mlp, direction_});
  }

  const ExpertLayer& layer_;
  const Transformer& model_;
  Direction direction_;
  ExpertRows rows_;
  std::int64_t own_tokens_;  // tokens of one device under sequence parallelism
  std::vector<ExpertStep> steps_;
};

}  // namespace

std::vector<ExpertStep> expert_layer(const ExpertLayer& layer, Direction direction) {
  return LayerSteps(layer, direction).run();
}

std::vector<ExpertStep> expert_activations(const ExpertLayer& layer) {
  return LayerSteps(layer, Direction::forward).activations();
}

}  // namespace hdpsim
