#include "sim/run/plan_ahead.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "sim/base/check.h"

namespace hdpsim {

Turn Turns::operator[](std::int64_t index) const {
  const auto all = static_cast<std::int64_t>(plans);
  return {.plan = static_cast<std::size_t>(index % all),
          .step = first_step + index / all / runs,
          .run = index / all % runs};
}

PlanAhead::PlanAhead(const Turns& turns, Planner planner, const LoweringOptions& lowering)
    : turns_(turns), planner_(std::move(planner)), lowering_(lowering), thread_([this] { run(); }) {}

PlanAhead::~PlanAhead() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void PlanAhead::run() {
  constexpr std::size_t most_kept = 2;  // the turn that runs, and the next
  for (std::int64_t turn = 0; turn < turns_.count(); ++turn) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return ended_ || turn <= asked_for_ + 1; });
      if (ended_) return;
    }
    Result result = planned(turn);
    {
      const std::lock_guard lock(mutex_);
      kept_.push_back(std::move(result));
      if (kept_.size() > most_kept) {
        kept_.pop_front();
        ++first_kept_;
      }
    }
    changed_.notify_all();
  }
}

PlanAhead::Result PlanAhead::planned(std::int64_t turn) const {
  using Clock = std::chrono::steady_clock;
  try {
    const Clock::time_point begin = Clock::now();
    Plan plan = planner_(turns_[turn]);
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    return {std::make_shared<const PlannedStep>(std::move(plan), lowering_, Duration::seconds(seconds)), nullptr};
  } catch (...) {
    return {nullptr, std::current_exception()};
  }
}

std::shared_ptr<const PlannedStep> PlanAhead::step(std::int64_t turn) {
  std::unique_lock lock(mutex_);
  HDPSIM_CHECK(first_kept_ <= turn && turn < turns_.count(), "turn {} of {} is asked for, after {}", turn,
               turns_.count(), asked_for_);
  asked_for_ = std::max(asked_for_, turn);
  changed_.notify_all();
  const auto last_kept = [&] { return first_kept_ + static_cast<std::int64_t>(kept_.size()) - 1; };
  changed_.wait(lock, [&] { return turn <= last_kept(); });
  const Result& result = kept_[static_cast<std::size_t>(turn - first_kept_)];
  if (result.error) std::rethrow_exception(result.error);
  return result.step;
}

}  // namespace hdpsim
