#pragma once

#include <cstdint>
#include <vector>

#include "sim/plan/impl/known_speeds.h"
#include "sim/plan/impl/plan_builder.h"
#include "sim/plan/impl/policies.h"
#include "sim/plan/impl/rank_loads.h"
#include "sim/plan/impl/ring_sizing.h"
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
  double longest_seconds = 0;        ///< That offload may let a micro-batch take.
  double share = 0;                  ///< Seconds of every rank if all work were spread evenly.
  std::int64_t tokens_per_rank = 0;  ///< Of every ring, at most, whatever it takes then; 0: `longest_seconds` decides.
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

/// What both algorithms work with: the step, one way to plan it, and how far the plan and the loads of its ranks are.
class Balancing {
 protected:
  Balancing(const BalancedStep& step, const BalanceCandidate& candidate);
  ~Balancing() = default;

  /// The ranks of a micro-batch, and when they will have done it.
  struct Taken {
    std::vector<std::int64_t> ranks;
    double end;
  };
  /// On ranks of nominal speed, anywhere and in one node.
  struct Seconds {
    double any;
    double near;
  };
  /// The ranks are in no level until they are put back.
  [[nodiscard]] Taken take(std::int64_t degree, RankChoice choice, const Seconds& seconds);
  /// Of a sequence of C tokens or more, as the candidate has it.
  [[nodiscard]] RingSize sized(std::int64_t tokens) const;
  /// Adds the micro-batch of these ranks to the plan.
  void add(const Taken& taken, const SequenceList& members, const RingSize& size);
  /// Takes the builder of the plan, whose ranks are busy for `loads` seconds.
  [[nodiscard]] BalanceOutcome outcome(const std::vector<double>& loads, DealtSequences dealt = {});

  const PlanningContext& context_;
  const BalanceOptions& options_;
  const Batch& batch_;
  const KnownSpeeds& speeds_;
  BalanceCandidate candidate_;
  PlanBuilder builder_;
  RingSizing sizing_;
  RankLoads loads_;
  double longest_ = 0;  ///< Seconds of a micro-batch that was taken.
};

/// DP-Balance: rings from the buckets to the least loaded ranks, then what is short. See BalanceOptions.
[[nodiscard]] BalanceOutcome balance_ranks(const BalancedStep& step, const BalanceCandidate& candidate);
/// PP-Balance: wave by wave.
[[nodiscard]] BalanceOutcome balance_waves(const BalancedStep& step, const BalanceCandidate& candidate);

}  // namespace hdpsim
