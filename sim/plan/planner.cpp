#include "sim/plan/planner.h"

#include <utility>

#include "sim/base/check.h"
#include "sim/plan/expert_waves.h"
#include "sim/plan/impl/policy_kind.h"

namespace hdpsim {
namespace {

/// A policy's plans, converted to the waves of expert groups that span several ranks. Plans of files may be in waves
/// already.
class InExpertWaves final : public Planner {
 public:
  InExpertWaves(std::unique_ptr<Planner> policy, const PlanningContext& context)
      : policy_(std::move(policy)), ranks_(context.expert_ranks), padding_(context.expert_padding) {}

  [[nodiscard]] bool may_refuse() const override { return policy_->may_refuse(); }
  [[nodiscard]] BatchSourcePtr held_back(const BatchSource& data, std::int64_t steps) const override {
    return policy_->held_back(data, steps);
  }
  [[nodiscard]] Plan plan(const Batch& batch, std::int64_t step) const override {
    Plan made = policy_->plan(batch, step);
    return made.expert_ranks == ranks_ ? made : in_expert_waves(std::move(made), ranks_, padding_);
  }

 private:
  std::unique_ptr<Planner> policy_;
  std::int64_t ranks_;
  std::int64_t padding_;
};

}  // namespace

std::unique_ptr<Planner> make_planner(const Policy& policy, const PlanningContext& context, Diagnostics& diagnostics) {
  HDPSIM_CHECK(context.ranks >= 1 && context.ranks_per_node >= 1 && context.capacity >= 1 && context.context >= 1 &&
                   context.layers >= 1 && context.stages >= 1,
               "{} ranks, {} a node, capacity {}, context {}, {} layers, {} stages", context.ranks,
               context.ranks_per_node, context.capacity, context.context, context.layers, context.stages);
  Diagnostics found;
  PoolFit pool(policy.stated, context, found);
  std::unique_ptr<Planner> planner = policy.options->planner(pool);
  if (!found.empty()) planner.reset();
  diagnostics.append(found);
  if (planner != nullptr && context.expert_ranks > 1) {
    planner = std::make_unique<InExpertWaves>(std::move(planner), context);
  }
  return planner;
}

}  // namespace hdpsim
