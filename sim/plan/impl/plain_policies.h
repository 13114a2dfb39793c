#pragma once

#include <cstdint>
#include <memory>

#include "sim/plan/impl/pool_fit.h"
#include "sim/plan/planner.h"

namespace hdpsim {

// Planners that other policies fall back to, or are with some of their options.

/// How `static` packs sequences.
enum class StaticPacking : std::uint8_t {
  best_fit,  ///< Longest first, each where it leaves the least room: few packs.
  next_fit,  ///< In the order of the data, as data loaders do: a sequence that does not fit closes the pack.
};

/// The static mesh, `static`: ranks = dp x cp, and cp consecutive ranks form a group for the whole run. Sequences are
/// packed up to the context; every sequence of a pack is cut over all cp ranks; packs go to the dp groups in turn, so
/// that their counts differ by at most one.
struct StaticOptions {
  std::int64_t cp = 1;  ///< Divides the ranks; cp x capacity >= context. `auto`: the smallest such number.
  StaticPacking packing = StaticPacking::best_fit;
  DealOrder order = DealOrder::data;
  OffloadRule offload = {};  ///< Of every micro-batch. What pays (`auto`) is only what the ranks cannot hold.
};
[[nodiscard]] std::unique_ptr<Planner> make_static(const PlanningContext& context, const StaticOptions& options);
/// The static mesh with the degree that the longest sequence needs: other policies with `groups: uniform`. `offload`:
/// their rule, as PoolFit::fitting() has it.
[[nodiscard]] std::unique_ptr<Planner> make_uniform(PoolFit& pool, const OffloadRule& offload);

/// `hdp-naive`: ByteScale (arXiv 2502.21231), Algorithm 1. Sequences of at least C tokens get (r, D) from eq. 3,
/// shorter ones are packed to C by best fit with D = 1. The paper says only that they are then assigned to ranks. Here
/// micro-batches fill consecutive ranks wave by wave (FirstFit), whatever the ranks' loads are. Their order is either
/// that of the loop over the batch, in which the long sequences come first, as it meets them, and then the packs, which
/// exist only at its end; or longest first.
struct NaiveOptions {
  DealOrder order = DealOrder::data;
  /// `auto` lets no micro-batch take longer than the mean one, because nothing balances long ones. `auto` and
  /// `token-wise` also try the sizes of offloaded_tokens() for all long sequences, and no offload; the work model
  /// selects the best.
  OffloadRule offload;
};
[[nodiscard]] std::unique_ptr<Planner> make_hdp_naive(const PlanningContext& context, const NaiveOptions& options);

}  // namespace hdpsim
