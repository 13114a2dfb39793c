#pragma once

#include <cstdint>
#include <memory>

#include "sim/plan/impl/pool_fit.h"
#include "sim/plan/planner.h"

namespace hdpsim {

/// The static mesh, `static`: ranks = dp x cp, and cp consecutive ranks form a group for the whole run. Sequences are
/// packed by best-fit decreasing up to the context; every sequence of a pack is cut over all cp ranks; packs go to the
/// dp groups in turn, so that their counts differ by at most one.
struct StaticOptions {
  std::int64_t cp = 1;  ///< Divides the ranks; cp x capacity >= context. `auto`: the smallest such number.
  DealOrder order = DealOrder::data;
};
[[nodiscard]] std::unique_ptr<Planner> make_static(const PlanningContext& context, const StaticOptions& options);
/// The static mesh with the degree that the longest sequence needs: other policies with `groups: uniform`.
[[nodiscard]] std::unique_ptr<Planner> make_uniform(PoolFit& pool);

}  // namespace hdpsim
