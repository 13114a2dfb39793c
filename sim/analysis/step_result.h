#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/analysis/link_use.h"
#include "sim/analysis/memory_use.h"
#include "sim/engine/timeline.h"
#include "sim/loading/loader_use.h"

namespace hdpsim {

/// The time in which ranks worked and did not wait for others, over the ranks of one step.
struct BusyTimes {
  Duration min;
  Duration mean;
  Duration max;
  Duration deviation;  ///< Population standard deviation.
  friend bool operator==(const BusyTimes&, const BusyTimes&) = default;
};
[[nodiscard]] BusyTimes busy_times(const Timeline& timeline);

/// Processor seconds of the simulating machine by phase.
struct PhaseTimes {
  double batch_s = 0;  ///< Drawing the sequences.
  double planner_s = 0;
  double check_s = 0;       ///< Checking the plan.
  double simulation_s = 0;  ///< Simulation, with lowering, which goes micro-batch by micro-batch.
  double summary_s = 0;     ///< Computing the figures of the step.
  PhaseTimes& operator+=(const PhaseTimes& other);
};

/// The partners with whom devices exchange keys and values.
struct ConnectionUse {
  std::int64_t peers = 0;   ///< The largest number of peers of one device.
  std::int64_t groups = 0;  ///< Distinct groups of at least two ranks.
  friend bool operator==(const ConnectionUse&, const ConnectionUse&) = default;
};

/// The figures of one simulated step that are kept when its plan and its timeline are gone.
struct StepResult {
  std::int64_t step = 0;
  std::int64_t sequences = 0;
  std::int64_t tokens = 0;
  std::int64_t micro_batches = 0;
  std::int64_t tokens_held = 0;  ///< The most tokens that a micro-batch leaves on a device of its ranks.
  double model_flops = 0;        ///< Useful FLOPs of the batch: see model_flops().
  Duration time;
  Duration bound;  ///< No plan of the batch on this mesh takes less: PointStep::bound() and least_ending().
  Breakdown mean;  ///< Mean over ranks; sums to `time`.
  BusyTimes busy;
  EvidenceSums evidence{};  ///< Evidence of the kernels, summed over ranks.
  ConnectionUse connections;
  MemoryUse memory;
  std::uint64_t events = 0;
  PhaseTimes phases;
  /// Change of the step's time per relative change of a family's costs, by CostFamily. Empty unless it was asked for.
  std::vector<Duration> slopes{};
  std::vector<Duration> slow_nodes{};  ///< Change of the step's time with one slow node, by its place; as slopes.
  std::vector<Duration> routes{};      ///< Change of the step's time with other routes; as slopes.
  /// Change of the step's time with each parameter of a fitted profile at the lower, then at the upper end of its
  /// interval; as slopes.
  std::vector<Duration> fitted{};
  std::vector<Duration> loading{};     ///< Time of each stage of loading the batch; empty if not modelled.
  LoadingJob loading_job{};            ///< What is loaded there.
  std::optional<LoaderUse> loaders{};  ///< Empty unless the study names sources.
};

/// Adds the time that the step, with all of its ranks, waits for its data before it begins.
void add_data_wait(Duration wait, StepResult& step);

/// The memory of the fullest ranks of one step.
struct StepMemory {
  std::int64_t step = 0;
  std::vector<RankMemory> ranks;
  friend bool operator==(const StepMemory&, const StepMemory&) = default;
};

/// A policy's answer where it has no plan for a batch.
struct Refusal {
  std::int64_t step = 0;  ///< The first step of the run that it refuses.
  std::string message;    ///< The policy's own words.
  std::string help;       ///< What it suggests; may be empty.
  friend bool operator==(const Refusal&, const Refusal&) = default;
};

/// The figures of one run. A run whose plan was refused has none.
struct RunResult {
  std::vector<StepResult> steps;
  std::vector<Breakdown> ranks;  ///< Mean over steps by worker (HDP rank, stage); each sums to the mean step time.
  std::vector<LinkUse> links;    ///< The links that were used most, busiest first.
  StepMemory memory{};           ///< The memory in the step with the fullest device, the first of several.
  std::vector<LoaderEvent> loader_events{};
  std::optional<Refusal> refusal{};
};

/// The mean of many breakdowns, exact whatever their number and order.
class BreakdownMean {
 public:
  void add(const Breakdown& breakdown);
  /// Adds time to the total of what was added.
  void extend(Activity activity, Duration time) { sums_[static_cast<std::size_t>(activity)] += time.picoseconds(); }
  /// The mean in whole picoseconds; rounding differences go to the largest activity, so that the parts sum to the mean
  /// of the totals.
  [[nodiscard]] Breakdown mean() const;

 private:
  std::array<Int128, activity_count> sums_{};
  std::int64_t count_ = 0;
};

}  // namespace hdpsim
