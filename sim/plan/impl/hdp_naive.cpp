#include "sim/plan/impl/hdp_naive.h"

#include <algorithm>
#include <utility>

#include "sim/plan/impl/deal_order.h"
#include "sim/plan/impl/packing.h"
#include "sim/plan/impl/policies.h"
#include "sim/plan/impl/static_mesh.h"
#include "sim/plan/impl/waves.h"
#include "sim/plan/plan_time.h"

namespace hdpsim {
namespace {

class HdpNaive final : public Planner {
 public:
  HdpNaive(const PlanningContext& context, const NaiveOptions& options)
      : context_(context), options_(options), sizing_(context, options.offload) {}

  [[nodiscard]] bool may_refuse() const override { return false; }
  // With offload, also tries the numbers of tokens per rank of offloaded_tokens(), and no offload; the work model
  // selects the best.
  Plan plan(const Batch& batch, std::int64_t step) const override {
    // A sequence of C tokens or more fills a pack alone, so that one call packs the shorter ones and lists the others.
    std::vector<SequenceList> packs = best_fit(batch, longest_first(batch), context_.capacity);
    put_in_order(packs, options_.order);
    // The loop over the batch places a long sequence when it meets it; packs exist only when it has met all short ones.
    std::stable_partition(packs.begin(), packs.end(), [&](const SequenceList& pack) {
      return batch.sequences[pack.front()].tokens >= context_.capacity;
    });
    const auto made = [&](std::int64_t tokens_per_rank) { return planned(batch, step, packs, tokens_per_rank); };
    Plan best = made(0);
    std::vector<std::int64_t> others = offloaded_tokens(context_, options_.offload);
    if (others.empty()) return best;
    if (context_.context <= context_.ranks * context_.capacity) others.push_back(context_.capacity);
    double shortest = plan_time(best, context_.work).step(context_.stages);
    for (const std::int64_t tokens_per_rank : others) {
      Plan other = made(tokens_per_rank);
      const double seconds = plan_time(other, context_.work).step(context_.stages);
      if (seconds >= shortest) continue;
      shortest = seconds;
      best = std::move(other);
    }
    return best;
  }

 private:
  struct Placed {
    std::size_t pack;
    RingSize size;
    Waves::Place place;
  };

  Plan planned(const Batch& batch, std::int64_t step, const std::vector<SequenceList>& packs,
               std::int64_t tokens_per_rank) const {
    PlanBuilder builder("hdp-naive", context_, batch, step);
    std::vector<Placed> placed = place(batch, packs, tokens_per_rank);
    std::stable_sort(placed.begin(), placed.end(),
                     [](const Placed& a, const Placed& b) { return a.place.wave < b.place.wave; });
    for (const Placed& it : placed) {
      builder.add_consecutive(static_cast<std::size_t>(it.place.first_rank), it.size, packs[it.pack]);
    }
    return builder.take();
  }

  // `tokens_per_rank` 0: the number that the rule gives.
  std::vector<Placed> place(const Batch& batch, const std::vector<SequenceList>& packs,
                            std::int64_t tokens_per_rank) const {
    // A policy that ignores loads cannot balance long micro-batches: offload must not lengthen them beyond the mean.
    const double longest_seconds = balanced_shares(batch, context_, sizing_).micro_batch;
    Waves waves(packs.size(), context_.ranks);
    std::vector<Placed> placed;
    placed.reserve(packs.size());
    for (std::size_t i = 0; i < packs.size(); ++i) {
      const std::int64_t tokens = batch.sequences[packs[i].front()].tokens;
      const RingSize size = tokens < context_.capacity ? RingSize{}
                            : tokens_per_rank > 0      ? sizing_.size_of(tokens, tokens_per_rank)
                                                       : sizing_.size(tokens, longest_seconds);
      placed.push_back({i, size, waves.place(size.degree)});
    }
    return placed;
  }

  PlanningContext context_;
  NaiveOptions options_;
  RingSizing sizing_;
};

/// `hdp-naive: {order: data | descending, offload: none | auto | ratio | token-wise, groups: by_length | uniform}`.
struct NaivePolicy final : PolicyOptions, NaiveOptions {
  GroupSizes groups = GroupSizes::by_length;

  [[nodiscard]] std::unique_ptr<Planner> planner(PoolFit& pool) const override {
    const NaiveOptions options{order, pool.fitting(offload)};
    return groups == GroupSizes::uniform ? make_uniform(pool) : make_hdp_naive(pool.context(), options);
  }
};

}  // namespace

std::unique_ptr<Planner> make_hdp_naive(const PlanningContext& context, const NaiveOptions& options) {
  return std::make_unique<HdpNaive>(context, options);
}

PolicyKind hdp_naive_policy() {
  KeyTable<NaivePolicy> keys("hdp-naive");
  add_order(keys);
  add_offload(keys);
  add_groups(keys);
  return policy_kind("hdp-naive",
                     "ByteScale, Algorithm 1: a sequence gets as many ranks as its length needs, shorter sequences are "
                     "packed into one rank; ranks are filled in turn, whatever their load",
                     std::move(keys));
}

}  // namespace hdpsim
