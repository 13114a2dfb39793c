#pragma once

#include <cstdint>
#include <vector>

#include "sim/plan/impl/hdp_balance.h"
#include "sim/plan/impl/known_speeds.h"
#include "sim/plan/impl/plan_builder.h"
#include "sim/plan/impl/rank_loads.h"
#include "sim/plan/impl/ring_sizing.h"
#include "sim/plan/impl/short_sequences.h"

namespace hdpsim {

/// The step that `hdp-balance` plans. The referenced objects must outlive the planning.
struct BalancedStep {
  const PlanningContext& context;
  const BalanceOptions& options;
  const Batch& batch;
  const SequenceList& order;  ///< longest_first() of the batch.
  const KnownSpeeds& speeds;
  std::int64_t step;
};

/// One way to plan the step.
struct BalanceCandidate {
  RankChoice choice = RankChoice::least_wait;
  double longest_seconds = 0;  ///< Maximum seconds of a micro-batch with offload.
  double share = 0;            ///< Seconds of every rank if all work were spread evenly.
  /// Maximum tokens per rank of every ring, whatever its time; 0: `longest_seconds` decides.
  std::int64_t tokens_per_rank = 0;
  /// Ranks known to be slow get only short sequences, unless a ring needs them.
  bool rings_on_fast = false;
};

/// The result of one way to plan the step, by the work model.
struct BalanceOutcome {
  PlanBuilder builder;
  DealtSequences dealt;  ///< The sequences still to be added to it.
  double step = 0;       ///< Seconds until the last rank is done.
  double spread = 0;     ///< How much earlier the first rank is done, as a share of the step.

  /// Makes the plan; needed for the best way only.
  [[nodiscard]] Plan take_plan();
};

/// The common state of both algorithms: the step, one way to plan it, the plan so far and the loads of its ranks.
class Balancing {
 protected:
  Balancing(const BalancedStep& step, const BalanceCandidate& candidate);
  ~Balancing() = default;

  /// The ranks of a micro-batch, and the time at which they are done with it.
  struct Taken {
    std::vector<std::int64_t> ranks;
    double end;
  };
  /// Seconds of a micro-batch on ranks of nominal speed, anywhere and in one node.
  struct Seconds {
    double any;
    double near;
  };
  /// Takes ranks for a micro-batch. They are in no level until they are put back.
  [[nodiscard]] Taken take(std::int64_t degree, RankChoice choice, const Seconds& seconds);
  /// The size of the ring for a sequence of at least C tokens, by the candidate.
  [[nodiscard]] RingSize sized(std::int64_t tokens) const;
  /// Adds the micro-batch of these ranks to the plan.
  void add(const Taken& taken, const SequenceList& members, const RingSize& size);
  /// The outcome when the ranks are busy for `loads` seconds. Takes the builder of the plan.
  [[nodiscard]] BalanceOutcome outcome(const std::vector<double>& loads, DealtSequences dealt = {});

  const PlanningContext& context_;
  const BalanceOptions& options_;
  const Batch& batch_;
  const KnownSpeeds& speeds_;
  BalanceCandidate candidate_;
  PlanBuilder builder_;
  RingSizing sizing_;
  RankLoads loads_;
  double longest_ = 0;  ///< Seconds of the longest micro-batch so far.
};

/// DP-Balance: rings from the buckets go to the least loaded ranks, then the short sequences. See BalanceOptions.
[[nodiscard]] BalanceOutcome balance_ranks(const BalancedStep& step, const BalanceCandidate& candidate);
/// PP-Balance: wave by wave.
[[nodiscard]] BalanceOutcome balance_waves(const BalancedStep& step, const BalanceCandidate& candidate);

}  // namespace hdpsim
