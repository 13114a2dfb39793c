#include "sim/plan/impl/slot.h"

#include <algorithm>

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

Slot::iterator first_of_smallest(Slot& slot) {
  return std::min_element(slot.begin(), slot.end(),
                          [](const SlotGroup& a, const SlotGroup& b) { return a.degree < b.degree; });
}

void widen(SlotGroup& group, std::int64_t degree, const Batch& batch) {
  group.degree = degree;
  group.load = 0;
  for (const std::size_t sequence : group.sequences) {
    group.load += square_work(batch.sequences[sequence].tokens, degree);
  }
}

void add_packed(PlanBuilder& builder, const Slot& slot) {
  std::size_t rank = 0;
  for (const SlotGroup& group : slot) {
    builder.add_consecutive(rank, {group.degree}, group.sequences);
    rank += static_cast<std::size_t>(group.degree);
  }
}

}  // namespace hdpsim
