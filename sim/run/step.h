#pragma once

#include <cstdint>
#include <vector>

#include "sim/analysis/step_result.h"
#include "sim/engine/timeline.h"
#include "sim/engine/world.h"
#include "sim/program/program.h"
#include "sim/study/study.h"

namespace hdpsim {

/// One simulated step with the breakdown of every rank and the load of every link.
struct SimulatedStep {
  StepResult result;
  std::vector<Breakdown> ranks;
  LinkBytes links;
  std::vector<RankMemory> memory;  ///< Of the fullest ranks, by number.
};

/// Throws InputError if the first step of a plan is longer than can be simulated. Computes it, in closed form, only where
/// a quantity of the point is far from what is usual: to be asked before anything is written.
void require_simulable(const StudyPoint& point);

/// The plan of one step. A plan that the checker refuses is a bug of the policy: a failed check.
[[nodiscard]] Plan make_plan(const StudyPoint& point, std::size_t plan, std::int64_t step, const Batch& batch);

/// Simulates a plan of the step with all that runs beside it. `world` is one of point.make_world(). InputError, as from
/// all that is here, if the step is longer than can be simulated: at the quantity that is farthest from what is usual.
[[nodiscard]] Timeline simulate_plan(const StudyPoint& point, const Program& program, World& world);

/// Draws the batch, plans and simulates. `world` is one of point.make_world(); `memory_ranks` says of how many ranks
/// the memory is written down.
[[nodiscard]] SimulatedStep simulate_step(const StudyPoint& point, std::size_t plan, std::int64_t step, World& world,
                                          std::size_t memory_ranks = 0);

}  // namespace hdpsim
