#include "sim/plan/impl/static_mesh.h"

#include <algorithm>
#include <numeric>

#include "sim/plan/impl/deal_order.h"
#include "sim/plan/impl/packing.h"
#include "sim/plan/impl/policies.h"

namespace hdpsim {
namespace {

class StaticMesh final : public Planner {
 public:
  StaticMesh(const PlanningContext& context, const StaticOptions& options)
      : context_(context), options_(options), sizing_(context, options.offload) {}

  [[nodiscard]] bool may_refuse() const override { return false; }
  Plan plan(const Batch& batch, std::int64_t step) const override {
    PlanBuilder builder("static", context_, batch, step);
    const std::vector<SequenceList> packs = packs_of(batch);
    const auto cp = static_cast<std::size_t>(options_.cp);
    const std::size_t groups = static_cast<std::size_t>(context_.ranks) / cp;
    for (std::size_t i = 0; i < packs.size(); ++i) {
      builder.add_consecutive(i % groups * cp, sizing_.on(options_.cp, tokens_of(batch, packs[i])), packs[i]);
    }
    return builder.take();
  }

 private:
  static std::int64_t tokens_of(const Batch& batch, const SequenceList& pack) {
    return std::accumulate(pack.begin(), pack.end(), std::int64_t{0}, [&](std::int64_t sum, std::size_t sequence) {
      return sum + batch.sequences[sequence].tokens;
    });
  }

  [[nodiscard]] std::vector<SequenceList> packs_of(const Batch& batch) const {
    if (options_.packing == StaticPacking::next_fit) return next_fit(batch, context_.context);
    std::vector<SequenceList> packs = best_fit(batch, longest_first(batch), context_.context);
    put_in_order(packs, options_.order);
    return packs;
  }

  PlanningContext context_;
  StaticOptions options_;
  RingSizing sizing_;
};

/// `static: {cp: auto | N, packing: best_fit | next_fit, order: data | descending}`.
struct StaticPolicy final : PolicyOptions {
  std::optional<std::int64_t> cp;  ///< Ranks of a group; if empty, the smallest number that holds the context.
  StaticPacking packing = StaticPacking::best_fit;
  DealOrder order = DealOrder::data;

  [[nodiscard]] std::unique_ptr<Planner> planner(PoolFit& pool) const override {
    if (packing == StaticPacking::next_fit && order == DealOrder::descending) {
      pool.error(pool.where("order"), "'order' is descending, but next_fit fills packs in the order of the data",
                 "leave out 'order', or write packing: best_fit");
    }
    return make_static(pool.context(), {.cp = pool.degree_of(cp), .packing = packing, .order = order});
  }
};

}  // namespace

std::unique_ptr<Planner> make_static(const PlanningContext& context, const StaticOptions& options) {
  return std::make_unique<StaticMesh>(context, options);
}

std::unique_ptr<Planner> make_uniform(PoolFit& pool, const OffloadRule& offload) {
  return make_static(pool.context(), {.cp = pool.least_degree_that_fits("groups", offload), .offload = offload});
}

PolicyKind static_policy() {
  KeyTable<StaticPolicy> keys("static");
  add_cp(keys);
  keys.word(
      "packing", "way to pack", {{"best_fit", StaticPacking::best_fit}, {"next_fit", StaticPacking::next_fit}},
      at(&StaticPolicy::packing),
      "packs are filled longest sequence first, each where the least room is left, or in the order of the data, in "
      "which they then stay");
  add_order(keys);
  return policy_kind(
      "static",
      "the static mesh: groups of `cp` consecutive ranks for the whole run; sequences are packed up to the "
      "context, and each is cut over all ranks of its group",
      std::move(keys));
}

}  // namespace hdpsim
