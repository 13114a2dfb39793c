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

void read_cp(const Value& value, StaticPolicy& policy, Diagnostics& diagnostics) {
  if (value.text == "auto") return;
  policy.cp = parse_count(value.text).value;
  if (value.is_scalar() && policy.cp.value_or(0) >= 1) return;
  diagnostics.error(value.position, fmt::format("'cp' is {}, it must be auto or a number of ranks", written(value)),
                    "write cp: auto, or cp: 8");
}

}  // namespace

std::unique_ptr<Planner> make_static(const PlanningContext& context, const StaticOptions& options) {
  return std::make_unique<StaticMesh>(context, options);
}

std::unique_ptr<Planner> make_uniform(PoolFit& pool) {
  return make_static(pool.context(), {pool.least_degree_that_fits("groups"), DealOrder::data});
}

PolicyKind static_policy() {
  KeyTable<StaticPolicy> keys("static");
  keys.add({"cp",
            either_shape({word_shape({"auto"}), shape_of(KeyShape::Kind::count)}),
            "auto",
            "the degree of context parallelism: ranks that share each sequence; `auto`: the least that holds the "
            "context",
            {}},
           read_cp);
  add_order(keys);
  return policy_kind("static", "the static mesh: groups of `cp` consecutive ranks for the whole run", std::move(keys));
}

}  // namespace hdpsim
