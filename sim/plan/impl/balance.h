#pragma once

#include <cstdint>
#include <vector>

#include "sim/plan/impl/known_speeds.h"
#include "sim/plan/impl/plan_builder.h"
#include "sim/plan/impl/policies.h"
#include "sim/plan/impl/rank_loads.h"
#include "sim/plan/impl/short_sequences.h"

namespace hdpsim {

/// The step that `hdp-balance` plans. What it refers to outlives the planning.
struct BalancedStep {
  const PlanningContext& context;
  const BalanceOptions& options;
  const Batch& batch;
  const SequenceList& order;  ///< longest_first() of the batch.
  const KnownSpeeds& speeds;
  std::int64_t step;
};

/// One way to plan it.
struct BalanceCandidate {
  RankChoice choice = RankChoice::least_wait;
  double longest_seconds = 0;  ///< That offload may let a micro-batch take.
  double share = 0;            ///< Seconds of every rank if all work were spread evenly.
  bool rings_on_fast = false;  ///< Ranks that are known to be slow get short sequences alone, unless a ring needs them.
};

/// How a way turned out, by the work model.
struct BalanceOutcome {
  PlanBuilder builder;
  DealtSequences dealt;  ///< What is to be added to it.
  double step = 0;       ///< Seconds until the last rank is done.
  double spread = 0;     ///< How much earlier the first is done, as a share of the step.

  /// The plan itself, which only the best way needs.
  [[nodiscard]] Plan take_plan();
};

/// The ranks of the pool before any work: those differ that are more than delta of the balanced share apart.
[[nodiscard]] RankLoads no_loads(const BalancedStep& step, const BalanceCandidate& candidate);
/// Of a plan whose ranks are busy for `loads` seconds.
[[nodiscard]] BalanceOutcome outcome_of(PlanBuilder&& builder, const std::vector<double>& loads,
                                        DealtSequences&& dealt = {});

/// DP-Balance: rings from the buckets to the least loaded ranks, then what is short. See BalanceOptions.
[[nodiscard]] BalanceOutcome balance_ranks(const BalancedStep& step, const BalanceCandidate& candidate);
/// PP-Balance: wave by wave.
[[nodiscard]] BalanceOutcome balance_waves(const BalancedStep& step, const BalanceCandidate& candidate);

}  // namespace hdpsim
