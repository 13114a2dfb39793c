#pragma once

#include <cstdint>
#include <vector>

#include "sim/analysis/link_use.h"
#include "sim/analysis/memory.h"
#include "sim/engine/timeline.h"

namespace hdpsim {

/// How long the ranks worked while they did not wait for others, over the ranks of one step.
struct BusyTimes {
  Duration min;
  Duration mean;
  Duration max;
  Duration deviation;  ///< Population standard deviation.
  friend bool operator==(const BusyTimes&, const BusyTimes&) = default;
};
[[nodiscard]] BusyTimes busy_times(const Timeline& timeline);

/// Processor seconds of the simulating machine, phase by phase.
struct PhaseTimes {
  double batch_s = 0;  ///< Drawing the sequences.
  double planner_s = 0;
  double check_s = 0;       ///< Of the plan.
  double simulation_s = 0;  ///< With lowering, which goes micro-batch by micro-batch.
  double summary_s = 0;     ///< Figures of the step.
  PhaseTimes& operator+=(const PhaseTimes& other);
};

/// Who exchanged keys and values with whom.
struct ConnectionUse {
  std::int64_t peers = 0;   ///< The largest number of others that one device talked to.
  std::int64_t groups = 0;  ///< Distinct groups of at least two ranks.
  friend bool operator==(const ConnectionUse&, const ConnectionUse&) = default;
};

/// What remains of one simulated step when its plan and its timeline are gone.
struct StepResult {
  std::int64_t step = 0;
  std::int64_t sequences = 0;
  std::int64_t tokens = 0;
  std::int64_t micro_batches = 0;
  double model_flops = 0;  ///< Useful work of the batch: see model_flops().
  Duration time;
  Breakdown mean;  ///< Over ranks; sums to `time`.
  BusyTimes busy;
  EvidenceSums evidence{};  ///< Of the kernels, summed over ranks.
  ConnectionUse connections;
  MemoryUse memory;
  std::uint64_t events = 0;
  PhaseTimes phases;
  /// By CostFamily: change of the step's time per relative change of the family's costs. Empty unless it was asked for.
  std::vector<Duration> slopes{};
  std::vector<Duration> loading{};  ///< What each stage of loading its batch takes; empty if that is not modelled.
};

/// The step waits for its data before it begins, and with it all of its ranks.
void add_data_wait(Duration wait, StepResult& step);

/// The fullest ranks of one step.
struct StepMemory {
  std::int64_t step = 0;
  std::vector<RankMemory> ranks;
  friend bool operator==(const StepMemory&, const StepMemory&) = default;
};

/// What remains of one run.
struct RunResult {
  std::vector<StepResult> steps;
  std::vector<Breakdown> ranks;  ///< Mean over steps, one a worker (HDP rank, stage); each sums to the mean step time.
  std::vector<LinkUse> links;    ///< Those that rings used most, busiest first.
  StepMemory memory{};           ///< Of the step with the fullest device, the first of several.
};

/// The mean of many breakdowns, exact whatever their number and order.
class BreakdownMean {
 public:
  void add(const Breakdown& breakdown);
  /// Time that comes on top of what was added, in all.
  void extend(Activity activity, Duration time) { sums_[static_cast<std::size_t>(activity)] += time.picoseconds(); }
  /// In whole picoseconds; what rounding loses goes to the largest activity, so that the parts sum to the mean of the
  /// totals.
  [[nodiscard]] Breakdown mean() const;

 private:
  std::array<Int128, activity_count> sums_{};
  std::int64_t count_ = 0;
};

}  // namespace hdpsim
