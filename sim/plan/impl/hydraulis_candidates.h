#pragma once

#include <cstdint>
#include <vector>

namespace hdpsim {

/// The degrees of context parallelism of the pipelines of a strategy, in falling order; they sum up to the pool.
using PipelineDegrees = std::vector<std::int64_t>;

/// The strategies that `hydraulis` tries where a study states none, of pipelines of powers of two of ranks that divide
/// the pool and, so that one of them holds the context, of `holding` ranks (a divisor of the pool):
/// - pipelines that are all alike, of every such degree;
/// - one pipeline of `holding` ranks, or as many as half of the pool has, beside pipelines of one lesser degree;
/// - steps: of every degree up to `holding`, and then of every lesser one, as many as half of the ranks that are left
///   have, at least one, and of the least degree all others.
/// No strategy comes twice. About log2(ranks) + 3 log2(holding) of them.
[[nodiscard]] std::vector<PipelineDegrees> usual_strategies(std::int64_t ranks, std::int64_t holding);

}  // namespace hdpsim
