#pragma once

#include <cstdint>
#include <memory>

#include "sim/plan/impl/pool_fit.h"
#include "sim/plan/planner.h"

namespace hdpsim {

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

}  // namespace hdpsim
