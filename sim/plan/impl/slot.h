#pragma once

#include <cstdint>
#include <vector>

#include "sim/plan/impl/plan_builder.h"

namespace hdpsim {

// What schedulers have in common that divide the pool into groups of powers of two of ranks, again and again.

/// The sequences that share a group in one slot, in the order in which they came.
struct SlotGroup {
  std::int64_t degree = 0;
  double load = 0;  ///< Work of each rank, as the scheduler counts it.
  SequenceList sequences;
};

/// Groups that run side by side, on consecutive ranks in this order.
using Slot = std::vector<SlotGroup>;

/// What Megatron-LM takes a sequence to cost each rank of a group: s^2 / degree.
[[nodiscard]] double square_work(std::int64_t tokens, std::int64_t degree);
/// The least power of two of ranks, but at least `least`, that hold a sequence. `least`: a power of two.
[[nodiscard]] std::int64_t power_of_two_degree(std::int64_t tokens, std::int64_t capacity, std::int64_t least = 1);
/// The ranks of all groups.
[[nodiscard]] std::int64_t ranks_of(const Slot& slot);
/// The first of the groups of the least degree. The slot must have groups.
[[nodiscard]] Slot::iterator first_of_smallest(Slot& slot);
/// Gives a group more ranks, and its load anew as the square_work() of its sequences.
void widen(SlotGroup& group, std::int64_t degree, const Batch& batch);
/// Adds the sequences of each group as one micro-batch.
void add_packed(PlanBuilder& builder, const Slot& slot);

}  // namespace hdpsim
