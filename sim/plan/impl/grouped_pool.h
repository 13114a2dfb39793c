#pragma once

#include <cstdint>
#include <vector>

#include "sim/plan/impl/packs.h"
#include "sim/plan/planner.h"

namespace hdpsim {

/// A batch with what its constructions have in common.
struct OrderedBatch {
  const Batch& batch;
  std::int64_t step;
  SizedList order;  ///< Longest first.
  std::int64_t tokens;
  double pairs;

  OrderedBatch(const Batch& of, std::int64_t at_step)
      : batch(of), step(at_step), order(sized_longest_first(of)), tokens(tokens_of(order)), pairs(pairs_of(order)) {}
};

/// The divisors of the pool of which nodes are made, or which are made of nodes, ascending.
[[nodiscard]] std::vector<std::int64_t> group_sizes(const PlanningContext& context);
/// The pool whose ranks are groups of `size` neighbouring ranks, which share every sequence, with costs that hold for
/// full micro-batches of the batch.
[[nodiscard]] PlanningContext in_groups(const PlanningContext& context, std::int64_t size, const OrderedBatch& batch);
/// The plan of the pool of `context` whose groups of `size` ranks `plan` takes for ranks.
[[nodiscard]] Plan on_ranks(Plan plan, std::int64_t size, const PlanningContext& context);

}  // namespace hdpsim
