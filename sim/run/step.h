#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "sim/analysis/step_result.h"
#include "sim/cluster/device_conditions.h"
#include "sim/engine/simulator.h"
#include "sim/engine/timeline.h"
#include "sim/engine/world.h"
#include "sim/program/program.h"
#include "sim/study/study.h"

namespace hdpsim {

/// One simulated step with the breakdown of every rank and the load of every link.
struct SimulatedStep {
  StepResult result;
  std::vector<Breakdown> ranks;
  JobsTraffic links;
  std::vector<RankMemory> memory;  ///< Memory of the fullest ranks, by number.
};

/// Throws an InputError if the first step of a plan is longer than can be simulated; a plan that is refused takes no
/// time. Computes that, in closed form, only if a quantity of the point is far from usual. Call it before anything is
/// written.
void require_simulable(const StudyPoint& point);

/// The plan of one step. PlanRefused if the policy has none. A plan that the checker refuses is a bug of the policy: a
/// failed check.
[[nodiscard]] Plan make_plan(const StudyPoint& point, std::size_t plan, std::int64_t step, const Batch& batch);

/// What is known of a step before it is simulated.
struct StepPreview {
  MemoryUse memory;              ///< As of the simulated step, but for the time of its maximum.
  std::int64_t tokens_held = 0;  ///< StepResult::tokens_held.
  double model_flops = 0;        ///< StepResult::model_flops.
  std::uint64_t plan = 0;        ///< Hash of the plan: on one mesh, steps with the same one are the same.
  /// What the busiest rank works by the planners' work model, without waiting for another rank or stage. 0: not known,
  /// because devices differ.
  Duration busy;
};

/// Draws the batch and plans, as simulate_step() does. A small part of its time: O(stages x sum of the groups' sizes).
[[nodiscard]] StepPreview preview_step(const StudyPoint& point, std::size_t plan, std::int64_t step);

/// What decides how long the plans of a point take, besides their programs and the world. The point must outlive it.
struct StepConditions {
  Grain grain = Grain::fluid;
  const DeviceConditions& devices;
  const std::vector<StudyNeighbour>& neighbours;  ///< Jobs that train beside the main one.
  const std::vector<BackgroundTraffic>& traffic;
  const Outsize& outsize;  ///< The likely cause if a step is too long to be simulated.
  const DeviceProfile& profile;  ///< Of the devices' copies to and from the host.

  /// The same with devices in other conditions, which must outlive the result.
  [[nodiscard]] StepConditions with(const DeviceConditions& others) const;
};
[[nodiscard]] StepConditions conditions_of(const StudyPoint& point);

/// Simulates a plan of a step together with all that runs at the same time. `world` is one of the point's.
/// InputError, as from all functions here, if the step is longer than can be simulated; it points at the quantity that
/// is farthest from usual. The stages of `roundpipe` go round the GPUs (streamed_step()), whatever the grain.
[[nodiscard]] Timeline simulate_plan(const Program& program, World& world, const StepConditions& conditions);

/// What is wanted of a step besides its figures.
struct StepRequest {
  std::size_t memory_ranks = 0;  ///< Ranks whose memory over time is recorded.
  /// The conditions of devices in place of the point's; must outlive the call. Null: the point's.
  const DeviceConditions* devices = nullptr;
  /// Sees the step as it was simulated, before its program and timeline are gone; may be empty.
  std::function<void(const Program&, const Timeline&)> see{};
};

/// Simulates a step whose sound plan is made. `world` is one of its point's make_world().
[[nodiscard]] SimulatedStep simulate_step(const PointStep& planned, World& world, const StepRequest& wanted = {});
/// The same after drawing the batch and planning. PlanRefused if the policy has no plan for the batch.
[[nodiscard]] SimulatedStep simulate_step(const StudyPoint& point, std::size_t plan, std::int64_t step, World& world,
                                          const StepRequest& wanted = {});

/// What loading adds to the steps of a run.
struct DataWaits {
  std::vector<Duration> waits;
  std::vector<Bytes> host_growth;  ///< A device's share of what loaders hold that the run has added.
  std::vector<LoaderEvent> events;
};
/// Adds to the steps of a run, from its first one on, what they wait for their data, and what loads. The study must
/// have `loading`.
DataWaits add_data_waits(const StudyPoint& point, std::vector<StepResult>& steps);

}  // namespace hdpsim
