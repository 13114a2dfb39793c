#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "sim/plan/impl/deal_order.h"
#include "sim/plan/impl/ring_sizing.h"
#include "sim/plan/planner.h"

namespace hdpsim {

/// The static mesh, `static`: ranks = dp x cp, and cp consecutive ranks form a group for the whole run. Sequences are
/// packed by best-fit decreasing up to the context; every sequence of a pack is cut over all cp ranks; packs go round
/// the dp groups, so that their counts differ by at most one.
struct StaticOptions {
  std::int64_t cp = 1;  ///< Divides the ranks; cp x capacity >= context. `auto`: the smallest such number.
  DealOrder order = DealOrder::data;
};
[[nodiscard]] std::unique_ptr<Planner> make_static(const PlanningContext& context, const StaticOptions& options);

/// `hdp-naive`: ByteScale (arXiv 2502.21231), Algorithm 1. Sequences of at least C tokens get (r, D) from eq. 3,
/// shorter ones are packed to C by best fit with D = 1. The text says only that they are then assigned to ranks. Here
/// micro-batches fill consecutive ranks wave by wave (Waves), whatever the ranks' loads are: first the long sequences
/// as the loop over the batch meets them, then the packs, which only exist when it has met all; or longest first.
struct NaiveOptions {
  DealOrder order = DealOrder::data;
  /// `auto` lets no micro-batch take longer than the mean one: nobody evens out long ones. It and `token-wise` also try
  /// the sizes of offloaded_tokens() for all long sequences, and none offloaded; the work model judges.
  OffloadRule offload;
};
[[nodiscard]] std::unique_ptr<Planner> make_hdp_naive(const PlanningContext& context, const NaiveOptions& options);

/// DP-Balance or PP-Balance, as below.
enum class Balance { dp, pp };

/// `hdp-balance`: ByteScale, Algorithm 2 with DP-Balance. As printed it never starts, because no rank is below a
/// maximum of zero, and it leaves several choices open. Completions:
///   targets   ranks more than delta below the most loaded one; where none or too few are, the least loaded join them;
///   draw      within the first bucket the longest sequence that the targets can hold, otherwise the longest;
///   ranks     a ring starts when its last rank is free, and that time counts on all its ranks. Of the ranks that are
///             free in time it gets either those that would wait least or the least loaded; within delta, whole nodes
///             first;
///   packing   short sequences fill the room that ceil(s / C) leaves in a ring where they cost no more than alone; the
///             rest go one by one, longest first, to the rank that is done first, and each rank packs its own to C by
///             best fit;
///   choice    the alternatives (which ranks; how far offload may shrink a ring, by its time and by tokens a rank) are
///             planned, as far as they can be better, and the work model judges.
/// PP-Balance keeps pipelines from waiting for micro-batches of another length. The paper draws from the buckets in
/// turn, so that one pipeline keeps one length level; here micro-batches, longest first, go to waves (Waves), and in
/// every wave the longest to the least loaded of the ranks that are free in it. So micro-batches of similar time run at
/// the same position of all pipelines, and follow each other in each; and where waves are full, rings stand at one
/// position on all their ranks, so that 1F1B runs without gaps (sim/program/pipeline.h). The last waves need not fill
/// the pool: pipelines may have unequal counts. Every policy adds micro-batches rank by rank in one order that all
/// share, so that none can deadlock, with stages or without.
struct BalanceOptions {
  /// Of equal work. Many: strictly longest first. Few: more freedom to draw what the targets hold.
  std::int64_t buckets = 16;
  double delta = 0.01;  ///< Share of the balanced step by which loads must differ to count as different.
  OffloadRule offload;
  /// Nothing: `auto`, which is `pp` in pipelines of more than one stage and with expert groups over several ranks.
  std::optional<Balance> balance;
  bool node_first = true;   ///< `placement`: node-first, or any: the lowest ranks.
  bool pack_groups = true;  ///< Whether short sequences may join rings.
  /// DP-Balance only, as pack_groups: whether a ring that would end after the balanced share may take more ranks than
  /// ceil(s / C), as long as its transfers stay hidden. Beyond the paper, whose D is eq. 3's, hence off.
  bool widen = false;
  /// Whether the plan of hdp-naive or static is taken where the work model takes it for shorter by more than 1 %: what
  /// looks at no load has fewer micro-batches sometimes, or rings that stay in their nodes.
  bool fallback = true;
};
[[nodiscard]] std::unique_ptr<Planner> make_hdp_balance(const PlanningContext& context, const BalanceOptions& options);

}  // namespace hdpsim
