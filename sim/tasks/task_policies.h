#pragma once

#include <string>
#include <vector>

#include "sim/tasks/task_plan.h"

namespace hdpsim {

/// Module after module, each on all devices that make it faster, task after task: Megatron-LM and DeepSpeed.
[[nodiscard]] TaskPlan sequential_plan(const TaskWork& work);

/// Task after task, the modules of each side by side as plan_level() allocates them: as DistMM does within a task.
[[nodiscard]] TaskPlan within_tasks_plan(const TaskWork& work);

/// Tasks side by side, the modules of each one after another on the devices of the task. Devices go to the task that
/// gains most by each, until none gains (Optimus, Peng et al. 2018, with the task for a job). Tasks that find no device
/// run in a further round.
[[nodiscard]] TaskPlan by_task_plan(const TaskWork& work);

/// All tasks together, level by level: Spindle.
[[nodiscard]] TaskPlan wave_plan(const TaskWork& work);

/// The sum of the levels' optima (level_optimum()) with the envelopes of their curves, which no plan that keeps levels
/// apart beats.
[[nodiscard]] double bound_of(const TaskWork& work);

/// How slices get their devices.
enum class SlicePlacing : std::uint8_t {
  local,        ///< In islands, where their data and parameters are (sim/tasks/slice_placement.h).
  consecutive,  ///< The next ones, wave by wave.
};

/// A policy of the comparison.
struct TaskPolicy {
  std::string name;
  TaskPlan (*plan)(const TaskWork&) = nullptr;
  SlicePlacing placing = SlicePlacing::local;
};

/// sequential, which is the baseline, distmm, optimus, spindle, and spindle with devices in order: spindle-consecutive.
[[nodiscard]] const std::vector<TaskPolicy>& task_policies();
[[nodiscard]] const std::vector<std::string>& task_policy_names();

}  // namespace hdpsim
