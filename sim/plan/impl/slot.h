#pragma once

#include <cstdint>
#include <functional>
#include <string>
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

/// The largest load of its groups; 0 without groups.
[[nodiscard]] double largest_load(const Slot& slot);

/// Whose slots they are, for what it refuses: its schedulers end with an error there, or not at all.
struct SlotOwner {
  std::string policy;
  Position position;       ///< Where a study asks for the policy.
  std::int64_t ranks = 1;  ///< Of the pool.
  [[noreturn]] void refuse_length(std::int64_t tokens, std::int64_t degree) const;
  [[noreturn]] void refuse_doubling(std::int64_t degree, std::int64_t free) const;
};

/// The first of the groups of the least degree, and the ranks that it gets where it is doubled within the pool.
struct Doubling {
  Slot::iterator group;
  std::int64_t more = 0;
};
/// The slot must have groups.
[[nodiscard]] Doubling next_doubling(Slot& slot, std::int64_t ranks);
/// Gives the group its ranks, and its load anew as the square_work() of its sequences; refused where too few are free.
void widen(const Doubling& doubling, const Slot& slot, const Batch& batch, const SlotOwner& owner);
/// Adds the sequences of each group as one micro-batch.
void add_packed(PlanBuilder& builder, const Slot& slot);

/// The slots of Megatron-LM's dynamic context parallelism for these sequences of a batch, each group at least one rank
/// (megatron_dynamic_cp.cpp). The pool's capacity is what a rank takes. InputError, by `owner`, where its scheduler
/// fails.
[[nodiscard]] std::vector<Slot> dynamic_slots(const Batch& batch, SequenceList sequences, const PlanningContext& pool,
                                              const SlotOwner& owner);

/// What FlexSP (Wang et al. 2025, arXiv 2412.01523, section 3.2) and Hydraulis take a group to cost: fixed seconds, and
/// more for each of its sequences, whichever the others are.
struct GroupTimes {
  std::function<double(std::int64_t degree)> fixed;
  std::function<double(std::int64_t tokens, std::int64_t degree)> sequence_seconds;
};

/// The work model as such a sum: what depends on a group's tokens is split among its sequences, and where a sequence's
/// transfers take longer than its attention, the difference is its own. The least time of a micro-batch is neglected.
/// Groups share a node if they are no larger than one.
[[nodiscard]] GroupTimes group_times(const WorkModel& work, std::int64_t ranks_per_node);

}  // namespace hdpsim
