#include "sim/engine/impl/progress.h"

#include <string>

#include "sim/base/check.h"

namespace hdpsim {

Progress::Progress(const Plan& plan) : plan_(plan), position_(plan.schedule.size()) {
  still_absent_.reserve(plan.micro_batches.size());
  for (const MicroBatch& micro_batch : plan.micro_batches) still_absent_.push_back(micro_batch.group.size());
  for (const auto& schedule : plan.schedule) unfinished_ += schedule.empty() ? 0 : 1;
}

std::optional<MicroBatchId> Progress::current(HdpRank rank) const {
  const auto& schedule = plan_.schedule[rank.index()];
  const std::size_t position = position_[rank.index()];
  if (position == schedule.size()) return std::nullopt;
  return schedule[position];
}

std::optional<MicroBatchId> Progress::arrive(HdpRank rank) {
  const auto next = current(rank);
  if (!next || --still_absent_[next->index()] > 0) return std::nullopt;
  return next;
}

void Progress::check_all_ended(std::string_view whose) const {
  constexpr std::size_t most_told = 8;
  std::string waiting;
  std::size_t told = 0;
  for (std::size_t rank = 0; rank < position_.size() && told < most_told; ++rank) {
    const auto next = current(HdpRank(rank));
    if (!next) continue;
    waiting += fmt::format("; rank {} waits in micro-batch {} for {} of its {} ranks", rank, next->index(),
                           still_absent_[next->index()], plan_.micro_batches[next->index()].group.size());
    ++told;
  }
  HDPSIM_CHECK(told == 0, "the simulated program{} is deadlocked{}",
               whose.empty() ? "" : fmt::format(" of '{}'", whose), waiting);
}

}  // namespace hdpsim
