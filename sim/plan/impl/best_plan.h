#pragma once

#include <functional>
#include <memory>

#include "sim/plan/impl/balance.h"
#include "sim/plan/impl/pool_fit.h"
#include "sim/plan/planner.h"

namespace hdpsim {

/// Whose plans compete.
enum class PlanSearch {
  none,   ///< Algorithm 2 of ByteScale alone.
  own,    ///< The same, our constructions and static meshes.
  quick,  ///< The same, but few of each, with groups that choose how they share (MicroBatch::exchange).
  all,    ///< `own` with such groups and, for small batches on small pools, the plans of all other policies.
};

/// Makes the planner of ByteScale's Algorithm 2 for a pool.
using MakeAlgorithm = std::function<std::unique_ptr<Planner>(const PlanningContext& context)>;

/// The best of many plans of a batch: of Algorithm 2; of widened rings and of even waves (BalanceCandidate), on single
/// ranks and on groups of neighbouring ranks that act as one rank; of hdp-naive and static meshes; and of the other
/// policies; for small batches also of all of them with a half, a quarter, ... of the capacity, as far as that helps.
/// The work model, which knows a plan's time within a few percent once it knows the order of passes
/// (PlanningContext::seconds_in_order), sorts out all but a few, of which a simulated step decides
/// (PlanningContext::simulated_seconds). Of larger batches the work model decides, after a check of the micro-batches
/// of the rank that ends last, simulated alone.
///
/// The number of constructions falls with the size of batch and pool, so that together they cost O(n + P) log (n + P).
/// No plan leaves more tokens on a rank than it holds.
[[nodiscard]] std::unique_ptr<Planner> make_best_plan(const PoolFit& pool, const BalanceOptions& options,
                                                      const MakeAlgorithm& make_algorithm, PlanSearch search);

}  // namespace hdpsim
