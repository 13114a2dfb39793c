#include "sim/engine/impl/schedule_progress.h"

#include "sim/base/check.h"

namespace hdpsim {

ScheduleProgress::ScheduleProgress(const Pipeline& pipeline) : pipeline_(pipeline), position_(pipeline.workers()) {
  still_absent_.reserve(pipeline.passes());
  for (std::size_t p = 0; p < pipeline.passes(); ++p) {
    still_absent_.push_back(pipeline.micro_batch(PassId(p)).group.size());
  }
  for (const auto& schedule : pipeline.orders()) unfinished_ += schedule.empty() ? 0 : 1;
}

std::optional<PassId> ScheduleProgress::current(WorkerId worker) const {
  const auto& schedule = pipeline_.orders()[worker.index()];
  const std::size_t position = position_[worker.index()];
  if (position == schedule.size()) return std::nullopt;
  return schedule[position];
}

std::optional<PassId> ScheduleProgress::arrive(WorkerId worker) {
  const auto next = current(worker);
  if (!next || --still_absent_[next->index()] > 0) return std::nullopt;
  return next;
}

void ScheduleProgress::check_all_ended(std::string_view whose) const {
  constexpr std::size_t most_told = 8;
  std::string waiting;
  std::size_t told = 0;
  for (std::size_t w = 0; w < position_.size() && told < most_told; ++w) {
    const auto next = current(WorkerId(w));
    if (!next) continue;
    waiting += fmt::format("; {} waits in micro-batch {} for {} of its {} ranks", name_of(WorkerId(w)),
                           pipeline_.micro_batch_id(*next).index(), still_absent_[next->index()],
                           pipeline_.micro_batch(*next).group.size());
    ++told;
  }
  HDPSIM_CHECK(told == 0, "the simulated program{} is deadlocked{}",
               whose.empty() ? "" : fmt::format(" of '{}'", whose), waiting);
}

std::string ScheduleProgress::name_of(WorkerId worker) const {
  const std::string rank = fmt::format("rank {}", pipeline_.rank_of(worker).index());
  return pipeline_.stages() == 1 ? rank : fmt::format("{} stage {}", rank, pipeline_.stage_of(worker));
}

}  // namespace hdpsim
