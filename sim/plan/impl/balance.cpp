#include "sim/plan/impl/balance.h"

#include <algorithm>
#include <utility>

namespace hdpsim {

RankLoads no_loads(const BalancedStep& step, const BalanceCandidate& candidate) {
  return {step.context.ranks, step.options.node_first ? step.context.ranks_per_node : 1,
          candidate.share > 0 ? step.options.delta * candidate.share : 1,
          candidate.rings_on_fast ? step.speeds.slow_ranks() : std::vector<std::int64_t>{}};
}

Plan BalanceOutcome::take_plan() {
  dealt.add_to(builder);
  return builder.take();
}

BalanceOutcome outcome_of(PlanBuilder&& builder, const std::vector<double>& loads, DealtSequences&& dealt) {
  const auto [first, last] = std::minmax_element(loads.begin(), loads.end());
  return {std::move(builder), std::move(dealt), *last, *last > 0 ? 1 - *first / *last : 0};
}

}  // namespace hdpsim
