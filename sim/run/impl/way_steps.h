#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "sim/engine/world.h"
#include "sim/plan/plan.h"
#include "sim/run/known_steps.h"
#include "sim/run/step.h"
#include "sim/study/study_point.h"

namespace hdpsim {

/// The first steps of one static mesh that shares its sequences in one way after another. What ways have in common is
/// made once: the batches, the plans of a degree, and the cluster with the prices of its collectives.
class WaySteps {
 public:
  /// Each step has a thread of its own, up to `jobs`.
  WaySteps(std::int64_t steps, std::size_t jobs);

  /// The steps. The only plan of `point` is the static mesh with groups of `cp` ranks (0: as its study says); it trains
  /// alone, and points differ in `cp` and in how ranks share a sequence. InputError if a step is refused or too long.
  /// Empty if it was stopped.
  [[nodiscard]] std::optional<std::vector<KnownStep>> simulate(const StudyPoint& point, std::int64_t cp,
                                                               std::size_t memory_ranks,
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

  [[nodiscard]] SimulatedStep simulated(const StudyPoint& point, Uncut& uncut, std::int64_t step, World& world,
                                        const StepRequest& wanted);
  [[nodiscard]] Uncut& uncut_of(const StudyPoint& point, std::int64_t cp);
  [[nodiscard]] Plan& plan_of(const StudyPoint& point, Uncut& uncut, std::int64_t step);
  [[nodiscard]] Batch& batch_of(const StudyPoint& point, std::int64_t step);

  const std::size_t jobs_;
  std::vector<std::optional<Batch>> batches_;   // by step
  std::vector<Uncut> uncut_;                    // the one that was asked for last is the last one
  std::vector<std::unique_ptr<World>> worlds_;  // by thread
};

}  // namespace hdpsim
