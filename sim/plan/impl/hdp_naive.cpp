#include <algorithm>
#include <utility>

#include "sim/plan/impl/packing.h"
#include "sim/plan/impl/policies.h"
#include "sim/plan/impl/waves.h"

namespace hdpsim {
namespace {

class HdpNaive final : public Planner {
 public:
  HdpNaive(const PlanningContext& context, const NaiveOptions& options)
      : context_(context), options_(options), sizing_(context, options.offload) {}

  Plan plan(const Batch& batch, std::int64_t step) const override {
    PlanBuilder builder("hdp-naive", context_, batch, step);
    // A sequence of C tokens or more fills a pack alone, so that one call packs the shorter ones and lists the others.
    std::vector<SequenceList> packs = best_fit(batch, longest_first(batch), context_.capacity);
    put_in_order(packs, options_.order);
    // The loop over the batch places a long sequence when it meets it; packs exist only when it has met all short ones.
    std::stable_partition(packs.begin(), packs.end(), [&](const SequenceList& pack) {
      return batch.sequences[pack.front()].tokens >= context_.capacity;
    });
    std::vector<Placed> placed = place(batch, packs);
    std::stable_sort(placed.begin(), placed.end(),
                     [](const Placed& a, const Placed& b) { return a.place.wave < b.place.wave; });
    for (const Placed& it : placed) {
      builder.add_consecutive(static_cast<std::size_t>(it.place.first_rank), it.size, packs[it.pack]);
    }
    return builder.take();
  }

 private:
  struct Placed {
    std::size_t pack;
    RingSize size;
    Waves::Place place;
  };

  std::vector<Placed> place(const Batch& batch, const std::vector<SequenceList>& packs) const {
    // A policy that looks at no load cannot even out long micro-batches: offload must not lengthen them beyond the
    // mean.
    const double longest_seconds = balanced_shares(batch, context_, sizing_).micro_batch;
    Waves waves(packs.size(), context_.ranks);
    std::vector<Placed> placed;
    placed.reserve(packs.size());
    for (std::size_t i = 0; i < packs.size(); ++i) {
      const std::int64_t tokens = batch.sequences[packs[i].front()].tokens;
      const RingSize size = tokens < context_.capacity ? RingSize{} : sizing_.size(tokens, longest_seconds);
      placed.push_back({i, size, waves.place(size.degree)});
    }
    return placed;
  }

  PlanningContext context_;
  NaiveOptions options_;
  RingSizing sizing_;
};

}  // namespace

std::unique_ptr<Planner> make_hdp_naive(const PlanningContext& context, const NaiveOptions& options) {
  return std::make_unique<HdpNaive>(context, options);
}

}  // namespace hdpsim
