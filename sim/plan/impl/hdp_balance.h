#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "sim/plan/impl/shared_options.h"
#include "sim/plan/planner.h"

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
/// turn, so that one pipeline keeps one length level. Here micro-batches, longest first, go to waves (Waves), and in
/// every wave the longest go to the least loaded of the ranks that are free in it. Micro-batches of similar time thus
/// run at the same position of all pipelines, and follow each other in each pipeline. Where waves are full, a ring has
/// the same position on all its ranks, so that 1F1B runs without gaps (sim/program/pipeline.h). The last waves need not
/// fill the pool: pipelines may have unequal counts. Every policy adds micro-batches rank by rank in one order that all
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
  /// Whether to take the plan of hdp-naive or static if the work model estimates it to be shorter by more than
  /// `margin`: policies that ignore loads sometimes have fewer micro-batches, or rings that stay in their nodes.
  bool fallback = true;
  /// The share of the step by which plans must differ to count as different; the work model is about as accurate.
  double margin = 0.01;
  /// Among plans that count as equally long, those whose ranks end within this share of the step of each other are
  /// preferred, because an error of the work model then delays few ranks.
  double spread = 0.03;
};
[[nodiscard]] std::unique_ptr<Planner> make_hdp_balance(const PlanningContext& context, const BalanceOptions& options);

}  // namespace hdpsim
