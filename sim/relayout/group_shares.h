#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/relayout/relayout.h"

namespace hdpsim {

/// A pipeline that has slow groups.
struct SlowPipeline {
  std::vector<std::size_t> slow;  ///< Indices of its slow groups, the slowest first.
  std::int64_t stages = 0;        ///< With those of usual groups.
};

/// Which slow groups are in a pipeline together, and how many stages each has; the other pipelines share what is left.
struct GroupShare {
  std::vector<SlowPipeline> slow;
  double objective = 0;  ///< Relayout::objective() of the best layout.
};

struct GroupShares {
  std::vector<GroupShare> best;  ///< By rising objective; equal ones in the order in which they are tried.
  bool is_exhaustive = true;
};

/// The best ways to share the groups of a job among its pipelines, `count` at most, as relaid() says. `slowdowns` and
/// `cuts` are those of the slow groups, the slowest first; `usual`: other groups.
[[nodiscard]] GroupShares best_shares(const RelayoutJob& job, std::span<const double> slowdowns,
                                      std::span<const std::int64_t> cuts, std::int64_t usual, std::size_t count);

/// Stages of the pipelines without slow groups where `groups` are left for `pipelines` of them: the first ones have one
/// more.
[[nodiscard]] std::int64_t usual_stages(std::int64_t groups, std::int64_t pipelines, std::int64_t pipeline);

/// Layers of the stages of a pipeline, first stage first, by what its groups take and hold; empty if they hold too few.
/// `slowdowns` and `cuts` are those of its first stages, the others are usual groups.
[[nodiscard]] std::vector<std::int64_t> stage_layers(const RelayoutJob& job, std::span<const double> slowdowns,
                                                     std::span<const std::int64_t> cuts, std::int64_t stages);

}  // namespace hdpsim
