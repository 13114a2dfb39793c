#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "sim/program/program.h"

namespace hdpsim {

/// One run of one step by one plan.
struct Turn {
  std::size_t plan = 0;
  std::int64_t step = 0;
  std::int64_t run = 0;
};

/// The order of runs: all plans of a step one after another, then all of them again for the next run, so that whatever
/// slows the machine for a while hits all plans alike.
struct Turns {
  std::size_t plans = 1;
  std::int64_t first_step = 0;
  std::int64_t steps = 1;
  std::int64_t runs = 1;

  [[nodiscard]] std::int64_t count() const { return steps * runs * static_cast<std::int64_t>(plans); }
  [[nodiscard]] Turn operator[](std::int64_t index) const;
};

/// A step that is ready to run.
class PlannedStep {
 public:
  PlannedStep(Plan plan, const LoweringOptions& lowering, Duration planning)
      : plan_(std::move(plan)), program_(plan_, lowering), planning_(planning) {}
  PlannedStep(const PlannedStep&) = delete;
  PlannedStep& operator=(const PlannedStep&) = delete;

  [[nodiscard]] const Plan& plan() const { return plan_; }
  [[nodiscard]] const Program& program() const { return program_; }
  /// The time to draw the batch, to plan and to check.
  [[nodiscard]] Duration planning() const { return planning_; }

 private:
  Plan plan_;
  Program program_;
  Duration planning_;
};

/// Plans on a thread of its own: while one turn runs, the next one is planned. All ranks of a process share one object,
/// and every process plans for itself, because the same study gives the same plans.
class PlanAhead {
 public:
  using Planner = std::function<Plan(const Turn&)>;
  /// Begins with the first turn. `lowering` must outlive the object.
  PlanAhead(const Turns& turns, Planner planner, const LoweringOptions& lowering);
  /// Waits for the plan that is under way.
  ~PlanAhead();
  PlanAhead(const PlanAhead&) = delete;
  PlanAhead& operator=(const PlanAhead&) = delete;

  /// Waits until the turn is planned, and starts planning the next one. Ranks ask for the same turn or for the one
  /// after it, and for the latter only when all have asked for this one (checked). Rethrows what the planner has
  /// thrown.
  [[nodiscard]] std::shared_ptr<const PlannedStep> step(std::int64_t turn);

 private:
  struct Result {
    std::shared_ptr<const PlannedStep> step;
    std::exception_ptr error;
  };
  void run();
  [[nodiscard]] Result planned(std::int64_t turn) const;

  const Turns turns_;
  const Planner planner_;
  const LoweringOptions& lowering_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t asked_for_ = -1;  ///< The last turn that a rank asked for; the one after it may be planned.
  bool ended_ = false;
  std::int64_t first_kept_ = 0;  ///< The turn of the first of ...
  std::deque<Result> kept_;      ///< ... the last two turns that were planned.
  std::thread thread_;           ///< Last, because it uses the members above.
};

}  // namespace hdpsim
