#include "sim/plan/impl/slot.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/quantity_text.h"
#include "sim/model/mixing.h"

namespace hdpsim {

double square_work(std::int64_t tokens, std::int64_t degree) {
  const auto s = static_cast<double>(tokens);
  return s * s / static_cast<double>(degree);
}

std::int64_t power_of_two_degree(std::int64_t tokens, std::int64_t capacity, std::int64_t least) {
  std::int64_t degree = least;
  while (degree * capacity < tokens) degree *= 2;
  return degree;
}

std::int64_t ranks_of(const Slot& slot) {
  std::int64_t ranks = 0;
  for (const SlotGroup& group : slot) ranks += group.degree;
  return ranks;
}

double largest_load(const Slot& slot) {
  double most = 0;
  for (const SlotGroup& group : slot) most = std::max(most, group.load);
  return most;
}

void SlotOwner::refuse_length(std::int64_t tokens, std::int64_t degree) const {
  throw InputError(position,
                   fmt::format("{} gives a sequence of {} tokens {} ranks, the pool has {}", policy, count_text(tokens),
                               degree, ranks),
                   "use a pool of a power of two of ranks, or a larger capacity");
}

void SlotOwner::refuse_doubling(std::int64_t degree, std::int64_t free) const {
  throw InputError(position, fmt::format("{} doubles a group of {} ranks, but only {} are free", policy, degree, free),
                   "use a pool of a power of two of ranks");
}

Doubling next_doubling(Slot& slot, std::int64_t ranks) {
  const auto group = std::min_element(slot.begin(), slot.end(),
                                      [](const SlotGroup& a, const SlotGroup& b) { return a.degree < b.degree; });
  return {group, std::min(group->degree, ranks - group->degree)};
}

void widen(const Doubling& doubling, const Slot& slot, const Batch& batch, const SlotOwner& owner) {
  SlotGroup& group = *doubling.group;
  const std::int64_t free = owner.ranks - ranks_of(slot);
  if (doubling.more > free) owner.refuse_doubling(group.degree, free);
  group.degree += doubling.more;
  group.load = 0;
  for (const std::size_t sequence : group.sequences) {
    group.load += square_work(batch.sequences[sequence].tokens, group.degree);
  }
}

void add_packed(PlanBuilder& builder, const Slot& slot) {
  std::size_t rank = 0;
  for (const SlotGroup& group : slot) {
    builder.add_consecutive(rank, {group.degree}, group.sequences);
    rank += static_cast<std::size_t>(group.degree);
  }
}

GroupTimes group_times(const WorkModel& work, std::int64_t ranks_per_node) {
  // Micro-batches have many sequences: if each alone is shorter than the least time of a micro-batch, they still add
  // up.
  WorkModel model = work;
  model.least = 0;
  const auto seconds = [model, ranks_per_node](double area, std::int64_t tokens, std::int64_t degree) {
    return model.seconds(area, tokens, degree, degree <= ranks_per_node);
  };
  const auto fixed = [seconds](std::int64_t degree) { return seconds(0, 0, degree); };
  const auto sequence_seconds = [seconds, fixed](std::int64_t tokens, std::int64_t degree) {
    return seconds(causal_pairs(tokens), tokens, degree) - fixed(degree);
  };
  return {fixed, sequence_seconds};
}

}  // namespace hdpsim
