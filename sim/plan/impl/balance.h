#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "sim/plan/impl/plan_builder.h"
#include "sim/plan/impl/rank_loads.h"
#include "sim/plan/impl/ring_sizing.h"
#include "sim/plan/impl/short_sequences.h"

namespace hdpsim {

/// DP-Balance or PP-Balance, as described below.
enum class Balance { dp, pp };

/// `hdp-balance`: ByteScale, Algorithm 2 with DP-Balance. As printed it never starts, because no rank is below a
/// maximum of zero, and it leaves several choices open. They are made as follows:
///   targets   ranks more than delta below the most loaded one; if none or too few are, the least loaded join them;
///   draw      within the first bucket the longest sequence that the targets can hold, otherwise the longest;
///   ranks     a ring starts when its last rank is free, and that time counts on all its ranks. Of the ranks that are
///             free in time it gets either those that would wait least or the least loaded; within delta, whole nodes
///             first;
///   packing   short sequences fill the room that ceil(s / C) leaves in a ring if they cost no more than alone; the
///             others go one by one, longest first, to the rank that is done first, and each rank packs its own to C by
///             best fit;
///   choice    the alternatives (which ranks; how far offload may shrink a ring, by its time and by tokens per rank)
///             are planned, unless they cannot be better, and the work model selects the best.
/// PP-Balance prevents pipelines from waiting for micro-batches of another length. The paper draws from the buckets in
/// turn, so that one pipeline keeps one length level. Here micro-batches, longest first, go to waves (FirstFit), and in
/// every wave the longest go to the least loaded of the ranks that are free in it. Micro-batches of similar time thus
/// run at the same position of all pipelines, and follow each other in each pipeline. Where waves are full, a ring has
/// the same position on all its ranks, so that 1F1B runs without gaps (sim/program/pipeline.h). The last waves need not
/// fill the pool: pipelines may have unequal counts. Ranks that are known to be slow may be in no wave and have packs
/// of their own, so that no wave waits for them. Every policy adds micro-batches rank by rank in one order that all
/// share, so that none can deadlock, with or without stages.
struct BalanceOptions {
  /// Number of buckets of equal work. Many: strictly longest first. Few: more freedom to draw what the targets hold.
  std::int64_t buckets = 16;
  double delta = 0.01;  ///< Share of the balanced step by which loads must differ to count as different.
  OffloadRule offload;
  /// Empty: `auto`, which is `pp` in pipelines of more than one stage and with expert groups over several ranks.
  std::optional<Balance> balance;
  bool node_first = true;   ///< `placement`: true for node-first; false for any, the lowest ranks.
  bool pack_groups = true;  ///< Whether short sequences may join rings.
  /// DP-Balance only, as is pack_groups: whether a ring that would end after the balanced share may take more than
  /// ceil(s / C) ranks, as long as its transfers stay hidden. Off by default, because the paper has D from eq. 3.
  bool widen = false;
  /// The share of the step by which plans must differ to count as different; the work model is about as accurate.
  double margin = 0.01;
  /// Among plans that count as equally long, those whose ranks end within this share of the step of each other are
  /// preferred, because an error of the work model then delays few ranks.
  double spread = 0.03;
};

/// The speeds of ranks in a step that the planner knows, relative to the device of its work model.
class KnownSpeeds {
 public:
  KnownSpeeds(const PlanningContext& context, std::int64_t step);

  /// Speed by rank. Empty: all are 1.
  [[nodiscard]] const std::vector<double>& by_rank() const { return speeds_; }
  [[nodiscard]] double of(std::int64_t rank) const {
    return speeds_.empty() ? 1 : speeds_[static_cast<std::size_t>(rank)];
  }
  [[nodiscard]] bool differ() const { return !slow_ranks().empty(); }
  /// The ranks slower than the mean, ascending.
  [[nodiscard]] std::vector<std::int64_t> slow_ranks() const;
  /// The total speed of the pool, which has `ranks` ranks, in ranks of nominal speed.
  [[nodiscard]] double sum(std::int64_t ranks) const;
  /// The speed of the slowest of `ranks`, which sets the pace of a ring.
  [[nodiscard]] double slowest(const std::vector<std::int64_t>& ranks) const;

 private:
  std::vector<double> speeds_;
};

/// A sequence of at least C tokens, the size of its ring, and its cost.
struct Ring {
  std::size_t sequence = 0;
  RingSize size;
  double seconds = 0;  ///< Seconds on every rank of the ring.
  std::uint32_t tokens = 0;
};

/// ByteScale, Algorithm 2 with DP-Balance: sequences, longest first, in buckets of equal work, drawn from the first
/// non-empty bucket. A sequence with more work than a bucket holds has a bucket alone.
class Buckets {
 public:
  /// `rings` has the longest sequence first and must outlive the buckets.
  Buckets(const std::vector<Ring>& rings, std::int64_t count);

  [[nodiscard]] bool empty() const { return left_.empty(); }
  /// Takes the longest sequence of the first bucket whose ring fits on `targets` ranks; if none fits, the longest.
  /// O(log n).
  const Ring& draw(std::int64_t targets);

 private:
  const std::vector<Ring>& rings_;
  std::vector<std::size_t> bucket_end_;  // for every ring, the end of its bucket
  std::set<std::size_t> left_;
};

/// The step that `hdp-balance` plans. The referenced objects must outlive the planning.
struct BalancedStep {
  const PlanningContext& context;
  const BalanceOptions& options;
  const SizedList& order;                 ///< sized_longest_first() of the batch.
  const ShortSequences& short_sequences;  ///< Those of fewer than C tokens.
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
  /// Ranks known to be slow get only short sequences, unless a ring needs them; in PP-Balance, packs of their own,
  /// which are as much of the work as they are of the speed of all.
  bool rings_on_fast = false;
  /// Whether a sequence that would end after `share` gets more ranks than it needs, if it then ends earlier.
  bool widen = false;
  bool join = true;  ///< Whether short sequences may join rings.
  /// PP-Balance: over how many waves the work is spread evenly, with rings so wide and packs so small that no
  /// micro-batch takes longer than its wave's share; 0: rings and packs are as large as ranks hold.
  std::int64_t waves = 0;
};

/// Micro-batches in few lists, of which most ways to plan a step never make a plan.
class FlatMicroBatches {
 public:
  void add(std::span<const std::int64_t> ranks, std::span<const SizedSequence> sequences, const RingSize& size);
  void add_to(PlanBuilder& builder) const;

 private:
  struct Entry {
    RingSize size;
    std::size_t ranks_end;
    std::size_t sequences_end;
  };
  std::vector<Entry> entries_;
  std::vector<HdpRank> ranks_;
  SizedList sequences_;
};

/// The result of one way to plan the step, by the work model.
struct BalanceOutcome {
  FlatMicroBatches micro_batches;
  DealtSequences dealt;  ///< The sequences that come behind them.
  double step = 0;       ///< Seconds until the last rank is done.
  double spread = 0;     ///< How much earlier the first rank is done, as a share of the step.

  /// Makes the plan, once; needed for the best way only. `builder` has no micro-batches.
  [[nodiscard]] Plan take_plan(PlanBuilder builder);
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
  /// The outcome when the ranks are busy for `loads` seconds. Takes the micro-batches.
  [[nodiscard]] BalanceOutcome outcome(const std::vector<double>& loads, DealtSequences dealt = {});

  const PlanningContext& context_;
  const BalanceOptions& options_;
  const KnownSpeeds& speeds_;
  BalanceCandidate candidate_;
  FlatMicroBatches micro_batches_;
  RingSizing sizing_;
  RankLoads loads_;
  double longest_ = 0;  ///< Seconds of the longest micro-batch so far.
};

/// DP-Balance: rings from the buckets go to the least loaded ranks, then the short sequences. See BalanceOptions.
[[nodiscard]] BalanceOutcome balance_ranks(const BalancedStep& step, const BalanceCandidate& candidate);
/// PP-Balance: wave by wave.
[[nodiscard]] BalanceOutcome balance_waves(const BalancedStep& step, const BalanceCandidate& candidate);

}  // namespace hdpsim
