#include <algorithm>
#include <span>
#include <utility>

#include "sim/plan/impl/plan_builder.h"
#include "sim/plan/impl/policies.h"
#include "sim/plan/plan_time.h"

namespace hdpsim {
namespace {

class HdpNaive final : public BuildingPlanner {
 public:
  HdpNaive(const PlanningContext& context, const NaiveOptions& options)
      : BuildingPlanner("hdp-naive", context), options_(options), sizing_(context, options.offload) {}

 private:
  // With offload, also tries the numbers of tokens per rank of offloaded_tokens(), and no offload; the work model
  // selects the best.
  void add_to(PlanBuilder& builder, const Batch& batch) const override {
    // A sequence of C tokens or more fills a pack alone, so that one call packs the shorter ones and lists the others.
    const PackList list = best_fit_list(sized_longest_first(batch), context_.capacity, options_.order);
    std::vector<Pack> packs;
    packs.reserve(list.size());
    for (std::size_t pack = 0; pack < list.size(); ++pack) packs.push_back({list[pack], list[pack].front().tokens});
    // The loop over the batch places a long sequence when it meets it; packs exist only when it has met all short ones.
    std::stable_partition(packs.begin(), packs.end(),
                          [&](const Pack& pack) { return pack.longest >= context_.capacity; });
    builder.reserve_more(packs.size());
    for (const Placed& it : best_places(batch, packs, builder)) {
      builder.add_consecutive(it.first_rank, it.size, packs[it.pack].sequences);
    }
  }

  struct Pack {
    std::span<const SizedSequence> sequences;
    std::int64_t longest;  // tokens of the first one
  };

  struct Placed {
    std::size_t wave;
    std::size_t pack;
    std::size_t first_rank;
    RingSize size;
  };

  std::vector<Placed> best_places(const Batch& batch, const std::vector<Pack>& packs,
                                  const PlanBuilder& builder) const {
    // A policy that ignores loads cannot balance long micro-batches: offload must not lengthen them beyond the mean.
    const double longest_seconds = balanced_shares(batch, context_, sizing_).micro_batch;
    std::vector<Placed> best =
        places(packs, [&](std::int64_t tokens) { return sizing_.size(tokens, longest_seconds); });
    std::vector<std::int64_t> others = offloaded_tokens(context_, options_.offload);
    if (others.empty()) return best;
    if (context_.context <= context_.ranks * context_.capacity) others.push_back(context_.capacity);
    std::vector<double> alone;  // seconds of a pack on one rank
    alone.reserve(packs.size());
    for (const Pack& pack : packs) alone.push_back(seconds_alone(pack));
    double shortest = step_seconds(best, packs, alone, builder);
    for (const std::int64_t tokens_per_rank : others) {
      std::vector<Placed> other =
          places(packs, [&](std::int64_t tokens) { return sizing_.size_of(tokens, tokens_per_rank); });
      const double seconds = step_seconds(other, packs, alone, builder);
      if (seconds >= shortest) continue;
      shortest = seconds;
      best = std::move(other);
    }
    return best;
  }

  // Wave by wave. `size_of(tokens)`: the size of a sequence of at least C tokens.
  template <class SizeOf>
  std::vector<Placed> places(const std::vector<Pack>& packs, SizeOf size_of) const {
    FirstFit waves(packs.size(), context_.ranks);
    std::vector<Placed> placed;
    placed.reserve(packs.size());
    for (std::size_t i = 0; i < packs.size(); ++i) {
      const std::int64_t tokens = packs[i].longest;
      const RingSize size = tokens < context_.capacity ? sizing_.pack_size() : size_of(tokens);
      const FirstFit::Place place = waves.place(size.degree);
      placed.push_back({place.bin, i, static_cast<std::size_t>(place.begin), size});
    }
    std::stable_sort(placed.begin(), placed.end(), [](const Placed& a, const Placed& b) { return a.wave < b.wave; });
    return placed;
  }

  // The planner's own estimate of the step, without a plan of it.
  double step_seconds(const std::vector<Placed>& placed, const std::vector<Pack>& packs,
                      const std::vector<double>& alone, const PlanBuilder& builder) const {
    PlanClock clock(static_cast<std::size_t>(context_.ranks));
    for (const Placed& it : placed) {
      if (it.size == RingSize{}) {
        const HdpRank rank(it.first_rank);
        clock.run({&rank, 1}, alone[it.pack]);
      } else {
        const MicroBatch micro_batch = builder.consecutive(it.first_rank, it.size, packs[it.pack].sequences);
        clock.run(micro_batch.group, seconds_of(micro_batch));
      }
    }
    return clock.time().step(context_.stages);
  }

  double seconds_alone(const Pack& pack) const {
    return context_.work.seconds(pairs_of(pack.sequences), tokens_of(pack.sequences), 1);
  }

  double seconds_of(const MicroBatch& micro_batch) const {
    return micro_batch_seconds(micro_batch, context_.layers, context_.work);
  }

  NaiveOptions options_;
  RingSizing sizing_;
};

/// `hdp-naive: {order: data | descending, offload: none | auto | ratio | token-wise, groups: by_length | uniform}`.
struct NaivePolicy final : PolicyOptions, NaiveOptions {
  GroupSizes groups = GroupSizes::by_length;

  [[nodiscard]] std::unique_ptr<Planner> planner(PoolFit& pool) const override {
    const NaiveOptions options{order, pool.fitting(offload)};
    return groups == GroupSizes::uniform ? make_uniform(pool, options.offload)
                                         : make_hdp_naive(pool.context(), options);
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
                     "packed into one rank; ranks are filled in turn, without regard to their load",
                     std::move(keys));
}

}  // namespace hdpsim
