#pragma once

#include <memory>
#include <optional>

#include "sim/cost/cost_model.h"
#include "sim/plan/planner.h"
#include "sim/program/program.h"

namespace hdpsim {

/// The plans of `planner` with all micro-batches that groups of several ranks share cut as `cut` says; where a plan
/// states a cut itself, that stays, and so does the one that goes with local spans. Empty: each is cut per document or
/// per pack, whichever takes less time of attention kernels on the busiest rank, forward and backward, over all layers;
/// per document if both take the same (WLB-LLM, Wang et al., OSDI 2025, section 5). Ranks must gather all keys first,
/// and layers see all tokens of a document.
///
/// Null if `planner` is. `job` is lowered for the planner's pool, `cost` prices its kernels. O(pieces) a micro-batch.
[[nodiscard]] std::unique_ptr<Planner> with_cut(std::unique_ptr<Planner> planner, std::optional<TokenCut> cut,
                                                const LoweringOptions& job, std::unique_ptr<CostModel> cost);

}  // namespace hdpsim
