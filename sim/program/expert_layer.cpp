#include "sim/program/expert_layer.h"

#include <algorithm>
#include <utility>

#include "sim/model/expert_compression.h"
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
    const bool in_groups = division().has_groups();
    const std::int64_t cut = division().cut(layer_.tp);
    const auto work = [&](const std::vector<std::int64_t>& rows) {
      return work_of(layer_.operations, {.tp = cut, .copies = rows}, {DensePart::expert_activation}, direction_);
    };
    if (layer_.tokens > 0 && model_.moe->shared_hidden > 0) {
      add(DensePart::mlp_activation, layer_.tokens);
    }
    in_groups ? evenly(work(rows_.even), work(rows_.slowest)) : void(steps_.emplace_back(work(rows_.slowest)));
    return std::move(steps_);
  }

  std::vector<ExpertStep> run() {
    if (layer_.tokens == 0) {
      exchanged_experts();
    } else if (direction_ == Direction::forward) {
      shared_experts();
      add(DensePart::router, own_tokens_);
      routed_experts();
    } else {
      routed_experts();
      add(DensePart::router, own_tokens_);
      shared_experts();
    }
    return std::move(steps_);
  }

 private:
  void shared_experts() {
    if (model_.moe->shared_hidden == 0) return;
    gathered(CollectiveKind::all_gather, model_.hidden);
    add(DensePart::shared_experts, layer_.tokens);
    gathered(CollectiveKind::reduce_scatter, model_.hidden);
  }

  // Tokens are narrow while they travel: the products to and from a latent stand where their own device has them.
  void routed_experts() {
    const bool has_latent = model_.moe->latent > 0;
    const bool is_forward = direction_ == Direction::forward;
    if (has_latent) add(is_forward ? DensePart::to_latent : DensePart::from_latent, own_tokens_);
    copied_experts();
    if (has_latent) add(is_forward ? DensePart::from_latent : DensePart::to_latent, own_tokens_);
  }

  // Adds a part on so many tokens.
  void add(DensePart part, std::int64_t tokens) {
    steps_.emplace_back(work_of(layer_.operations, {.tp = layer_.tp, .all = tokens, .stream = tokens}, {part},
                                direction_, layer_.gradients));
  }

  [[nodiscard]] ExpertDivision division() const { return layer_.layout.division(); }

  // The experts with these rows each, of a group or cut by the tensor-parallel devices.
  [[nodiscard]] LinearPart experts(const std::vector<std::int64_t>& rows, bool of_group) const {
    const ExpertLayout& layout = layer_.layout;
    const bool is_hybrid = layout.dispatch == ExpertDispatch::hybrid_ep;
    // DeepEP leaves the tokens in the order of the devices that sent them, whatever the experts.
    const bool sorts = of_group && !is_hybrid && (rows.size() > 1 || is_per_node());
    const bool pads = is_narrow(layer_.operations.recipe.products) && !is_hybrid && !layout.router_padding;
    return work_of(layer_.operations,
                   {.tp = division().cut(layer_.tp),
                    .copies = rows,
                    .fp8_sent = of_group && layout.fp8_sent,
                    .sorted = sorts,
                    .padded = pads},
                   {DensePart::experts}, direction_, layer_.gradients);
  }

  void copied_experts() {
    const bool is_forward = direction_ == Direction::forward;
    const DensePart first = is_forward ? DensePart::copies : DensePart::sum_of_copies;
    const DensePart last = is_forward ? DensePart::sum_of_copies : DensePart::copies;
    if (division().has_groups()) {
      if (!is_per_node()) add(first, own_tokens_);
      if (layer_.layout.fp8_sent) add(DensePart::sent_cast, own_tokens_);
      compressed(clustering);
      exchanged_experts();
      compressed(restoring);
      if (!is_per_node()) add(last, own_tokens_);
    } else {
      gathered(CollectiveKind::all_gather, copy_width(model_));
      add(first, layer_.tokens);
      steps_.emplace_back(experts(rows_.slowest, false));
      add(last, layer_.tokens);
      gathered(CollectiveKind::reduce_scatter, copy_width(model_));
    }
  }

  // Adds what senders do for compression, of which the gradients of weights need nothing.
  void compressed(LinearPart (*work)(const Transformer&, const ExpertCompression&, std::int64_t, Direction)) {
    const auto& compression = layer_.layout.compression;
    if (!compression || compression->is_free) return;
    if (direction_ == Direction::backward && layer_.gradients == Gradients::weights) return;
    steps_.emplace_back(work(model_, *compression, own_tokens_ * model_.moe->experts_per_token, direction_));
  }

  void exchanged_experts() {
    const LinearPart even = experts(rows_.even, true);
    const LinearPart slowest = experts(rows_.slowest, true);
    ExchangedExperts experts{exchange(layer_.layout.fp8_sent), exchange(false), even, wait_for(slowest, even),
                             is_per_node()};
    experts.to_experts.host_waits = direction_ == Direction::forward;  // backward knows all sizes
    if (layer_.layout.etp > 1) {
      experts.gathered = among_cuts(CollectiveKind::all_gather, layer_.layout.fp8_sent);
      experts.reduced = among_cuts(CollectiveKind::reduce_scatter, false);
    }
    steps_.emplace_back(std::move(experts));
  }

  [[nodiscard]] bool is_per_node() const { return sends_once_per_node(layer_.layout.dispatch); }

  [[nodiscard]] TensorParallelCollective exchange(bool fp8) const {
    const auto bytes_of = is_per_node() ? token_exchange_bytes : expert_exchange_bytes;
    return {.kind = CollectiveKind::all_to_all,
            .bytes = bytes_of(model_, rows_, fp8),
            .part = DensePart::mlp,
            .direction = direction_,
            .among = CollectiveGroup::experts};
  }

  [[nodiscard]] TensorParallelCollective among_cuts(CollectiveKind kind, bool fp8) const {
    return {.kind = kind,
            .bytes = expert_gather_bytes(model_, rows_, fp8),
            .part = DensePart::mlp,
            .direction = direction_,
            .among = CollectiveGroup::expert_cuts};
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
