#include "sim/plan/impl/static_mesh.h"

#include <algorithm>

#include "sim/plan/impl/deal_order.h"
#include "sim/plan/impl/packing.h"
#include "sim/plan/impl/policies.h"

namespace hdpsim {
namespace {

class StaticMesh final : public Planner {
 public:
  StaticMesh(const PlanningContext& context, const StaticOptions& options) : context_(context), options_(options) {}

  Plan plan(const Batch& batch, std::int64_t step) const override {
    PlanBuilder builder("static", context_, batch, step);
    std::vector<SequenceList> packs = best_fit(batch, longest_first(batch), context_.context);
    put_in_order(packs, options_.order);
    const auto cp = static_cast<std::size_t>(options_.cp);
    const std::size_t groups = static_cast<std::size_t>(context_.ranks) / cp;
    for (std::size_t i = 0; i < packs.size(); ++i) builder.add_consecutive(i % groups * cp, {options_.cp}, packs[i]);
    return builder.take();
  }

 private:
  PlanningContext context_;
  StaticOptions options_;
};

/// `static: {cp: auto | N, order: data | descending}`.
struct StaticPolicy final : PolicyOptions {
  std::optional<std::int64_t> cp;  ///< Ranks of a group; if empty, the smallest number that holds the context.
  DealOrder order = DealOrder::data;

  [[nodiscard]] std::unique_ptr<Planner> planner(PoolFit& pool) const override {
    return make_static(pool.context(), {cp ? pool.checked_degree(*cp) : pool.least_degree_that_fits("cp"), order});
  }
};

}  // namespace

std::unique_ptr<Planner> make_static(const PlanningContext& context, const StaticOptions& options) {
  return std::make_unique<StaticMesh>(context, options);
}

std::unique_ptr<Planner> make_uniform(PoolFit& pool) {
  return make_static(pool.context(), {pool.least_degree_that_fits("groups"), DealOrder::data});
}

PolicyKind static_policy() {
  KeyTable<StaticPolicy> keys("static");
  add_cp(keys);
  add_order(keys);
  return policy_kind("static", "the static mesh: groups of `cp` consecutive ranks for the whole run", std::move(keys));
}

}  // namespace hdpsim
