#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/engine/timeline.h"

namespace hdpsim {

/// The same figure as predicted and as measured.
struct Pair {
  double predicted = 0;
  double measured = 0;
  [[nodiscard]] double difference() const { return predicted - measured; }
  /// The error relative to the measured figure: -0.1 is predicted 10 % too low. Empty if the measured figure is zero.
  [[nodiscard]] std::optional<double> error() const;
};

/// All instructions of one kind, in all ranks of a step.
struct FamilyComparison {
  std::string family;             ///< Opcode and direction: "attention forward"; "overhead" has no direction.
  std::int64_t instructions = 0;  ///< Per step, rounded.
  Pair seconds;                   ///< Durations of all its instructions, added up.
};

/// The figures of one worker.
struct RankComparison {
  Pair busy_s;      ///< Timeline::busy().
  Pair exchange_s;  ///< Time in which a send/recv was under way.
  Pair hidden_s;    ///< The part of exchange_s that overlaps with its compute stream.
};

/// A prediction compared with measurements of the same instructions: a step, or a mean of steps. For a step that was
/// run several times every measured figure is the median over the runs, so that activities need not sum to the step
/// time.
struct Comparison {
  std::string plan;
  std::vector<std::int64_t> steps;
  std::size_t runs = 0;  ///< Runs of each step; the fewest.
  Pair step_time_s;
  /// The difference between runs of one step: |median(even runs) - median(odd runs)|, mean over the steps. The runs of
  /// both halves interleave, so that a machine that drifts counts as noise. An error below it means nothing. Empty for
  /// steps that were run once.
  std::optional<double> noise_floor_s;
  /// The predicted mean share of a core that kernels have.
  double core_share = 1;
  /// Attention, linear work and optimizer while a thread had a core, mean over the ranks: the part of a prediction with
  /// one core per thread that can be compared where ranks share cores. Empty if the measurement does not say.
  std::optional<Pair> on_core_s;
  /// The step time predicted a second time, with kernels at the speed measured alongside each run. Empty if they were
  /// not timed then.
  std::optional<Pair> at_pace_s = {};
  std::vector<FamilyComparison> families;           ///< Largest absolute difference first.
  std::int64_t stages = 1;                          ///< Stages of each rank's pipeline.
  std::vector<RankComparison> ranks;                ///< By worker: rank x stages + stage.
  std::array<Pair, activity_count> activities_s{};  ///< Mean over the ranks.
};

/// The activities for which a thread needs a core all the time.
inline constexpr std::array activities_of_kernels = {Activity::attention, Activity::linear, Activity::optimizer};

/// The activities of kernels added up: mean over the ranks.
[[nodiscard]] double computed_seconds(const std::vector<Breakdown>& ranks);

/// Below this part of the predicted processor time, the machine works for others, too.
inline constexpr double least_of_predicted_cores = 0.9;

/// The line of a report about a busy machine: "kernels had a core 57% of their time, 100% was predicted: the machine is
/// busy, and this comparison says little". Empty if kernels had what was predicted. `predicted_share` is the predicted
/// share of a core; of the `kernels_s` that kernels took, `on_core_s` were spent on a core.
[[nodiscard]] std::string busy_machine_text(double predicted_share, double on_core_s, double kernels_s);

/// The share of the time of kernels in which their threads had a core. Empty if the measurement does not say.
[[nodiscard]] std::optional<double> measured_core_share(const Comparison& comparison);
/// busy_machine_text() of a comparison; empty if the measurement does not say.
[[nodiscard]] std::string busy_machine_text(const Comparison& comparison);

/// Puts the largest absolute difference first.
void sort_by_difference(std::vector<FamilyComparison>& families);

/// "3", or in a pipeline "3, stage 1".
[[nodiscard]] std::string worker_name(const Comparison& comparison, std::size_t worker);

/// At most `most` ranks by number; if there are more, those whose busy time is predicted worst, the worst first.
[[nodiscard]] std::vector<std::size_t> worst_ranks(const Comparison& comparison, std::size_t most);

/// The mean over steps of one plan, with equal weights. At least one step (checked). InputError if they have different
/// plans or numbers of ranks.
[[nodiscard]] Comparison mean_of(const std::vector<Comparison>& steps);

}  // namespace hdpsim
