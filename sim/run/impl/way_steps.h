#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sim/analysis/step_result.h"
#include "sim/engine/world.h"
#include "sim/plan/plan.h"
#include "sim/study/study_point.h"

namespace hdpsim {

/// The first steps of one static mesh that shares its sequences in one way after another. What ways have in common is
/// made once: the batches, the plans of a degree, and the cluster with the prices of its collectives.
class WaySteps {
 public:
  explicit WaySteps(std::int64_t steps) : steps_(steps) {}

  /// The results of the steps. The only plan of `point` is the static mesh with groups of `cp` ranks (0: as its study
  /// says); it trains alone, and points differ in `cp` and in how ranks share a sequence. InputError if a step is
  /// refused or too long. Empty if it was stopped.
  [[nodiscard]] std::optional<std::vector<StepResult>> simulate(const StudyPoint& point, std::int64_t cp,
                                                                const std::function<bool()>& stop);
  /// The ranks of their groups: all are alike.
  [[nodiscard]] std::int64_t degree(const StudyPoint& point, std::int64_t cp);

 private:
  /// Plans as they are before any cut. Nothing else in them depends on the way.
  struct Uncut {
    std::int64_t cp = 0;
    std::int64_t capacity = 0;
    std::vector<std::optional<Plan>> plans;  // by step
  };
  /// Two degrees at a time: a way that does not fit is tried with the next one.
  static constexpr std::size_t kept_degrees = 2;

  [[nodiscard]] StepResult simulate_step(const StudyPoint& point, std::int64_t cp, std::int64_t step);
  [[nodiscard]] Plan& uncut(const StudyPoint& point, std::int64_t cp, std::int64_t step);
  [[nodiscard]] Batch& batch(const StudyPoint& point, std::int64_t step);
  [[nodiscard]] World& world(const StudyPoint& point);

  const std::int64_t steps_;
  std::vector<std::optional<Batch>> batches_;
  std::vector<Uncut> uncut_;  // the degree that was asked for last is the last one
  std::unique_ptr<World> world_;
};

}  // namespace hdpsim
