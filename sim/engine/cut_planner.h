#pragma once

#include <memory>
#include <optional>

#include "sim/cost/cost_model.h"
#include "sim/plan/plan.h"
#include "sim/plan/planner.h"
#include "sim/program/program.h"

namespace hdpsim {

/// Cuts the micro-batches of `plan` that groups of several ranks share as `cut` says; where the plan states a cut
/// itself, that stays, and so does the one that goes with local spans. Empty: each is cut per document or per pack,
/// whichever takes less time of attention kernels on the busiest rank, forward and backward, over all layers; per
/// document if both take the same (WLB-LLM, Wang et al., OSDI 2025, section 5). Ranks must gather all keys first, and
/// layers see all tokens of a document.
///
/// `job` is lowered for the plan's pool, `cost` prices its kernels. O(pieces) a micro-batch.
void cut_plan(Plan& plan, std::optional<TokenCut> cut, const LoweringOptions& job, const CostModel& cost);

/// The plans of `planner`, cut by cut_plan(). Null if `planner` is.
[[nodiscard]] std::unique_ptr<Planner> with_cut(std::unique_ptr<Planner> planner, std::optional<TokenCut> cut,
                                                const LoweringOptions& job, std::unique_ptr<CostModel> cost);

}  // namespace hdpsim
