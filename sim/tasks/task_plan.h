#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/base/id.h"
#include "sim/tasks/task_graph.h"
#include "sim/tasks/wave_planner.h"

namespace hdpsim {

/// What tasks compute, for those who allocate devices to it.
struct TaskWork {
  std::vector<MetaOp> runs;
  std::vector<OperatorRun> costs;  ///< By run.
  std::size_t tasks = 0;
  std::int64_t devices = 0;
};

/// Consecutive operators of a run on some devices.
struct TaskSlice {
  std::size_t run = 0;
  std::int64_t first = 0;  ///< Counted within the run.
  std::int64_t operators = 0;
  std::int64_t devices = 0;
  std::vector<DeviceId> placed{};  ///< Ascending; empty before they are placed.
};

/// Slices at the same time.
struct TaskWave {
  std::vector<TaskSlice> slices;
};

/// Waves one after another, forward in order and backward in reverse, on devices of their own.
struct TaskLane {
  std::int64_t devices = 0;
  std::vector<TaskWave> waves;
};

/// Lanes at the same time: their forward and backward end before the next round begins.
struct TaskRound {
  std::vector<TaskLane> lanes;
};

/// Who computes what in a step; gradients are summed behind the last round.
struct TaskPlan {
  std::vector<TaskRound> rounds;
};

}  // namespace hdpsim
