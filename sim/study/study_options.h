#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/id.h"
#include "sim/base/units.h"
#include "sim/document/key.h"
#include "sim/study/price.h"

namespace hdpsim {

/// `output: {perfetto: ...}`: which part of one step of every run becomes a timeline file.
struct PerfettoOptions {
  std::int64_t step = 0;
  std::vector<HdpRank> ranks;  ///< In the order of the file.
  Duration from{};
  Duration to = Duration::max();
};

/// `output` of a study: additional output files.
struct OutputOptions {
  bool html = true;
  std::size_t memory_ranks = 8;  ///< Number of ranks in memory.csv: the fullest.
  std::optional<PerfettoOptions> perfetto;
};

/// The ranks and steps that every run of the study has.
struct OutputLimits {
  std::int64_t ranks = std::numeric_limits<std::int64_t>::max();  ///< HDP ranks of its smallest mesh.
  std::int64_t steps = std::numeric_limits<std::int64_t>::max();  ///< Steps of its shortest run.
};

/// The keys of `output`.
[[nodiscard]] const std::vector<KeyText>& output_keys();

/// Reads `output: {html: false, memory: {ranks: 8}, perfetto: {ranks: 8, step: 0, from: 0 s, to: 2 s}}`.
/// `perfetto: true` is `{ranks: 8}`; a number of ranks means the first ones, fewer if there are fewer; a list, `[0,
/// 5]`, means those. All problems are reported.
[[nodiscard]] OutputOptions read_output(const Value& value, const OutputLimits& limits, Diagnostics& diagnostics);

/// `replay` of a study: the analysis of a long run by `hdpsim replay`.
struct ReplayOptions {
  /// Steps of one window; by default a fiftieth of the run, at least 10.
  std::optional<std::int64_t> window{};
  /// A plan has lost its lead in a window in which its speed-up over the baseline is below this.
  double threshold = 1.1;
  std::int64_t worst = 3;  ///< Number of slowest steps of each plan that are explained.
};

/// The keys of `replay`.
[[nodiscard]] const std::vector<KeyText>& replay_keys();

/// Reads `replay: {window: 50, threshold: 1.1, worst: 3}`. All problems are reported.
[[nodiscard]] ReplayOptions read_replay(const Value& replay, Diagnostics& diagnostics);

enum class TuneObjective {
  time,  ///< The shortest step.
  cost,  ///< The fewest GPU-hours per step.
};

/// `tune` of a study: the search space and objective of `hdpsim tune`.
struct TuneOptions {
  /// The values that one path of the study can have.
  struct Dimension {
    std::string path;  ///< `plans` for the one plan; otherwise a path as in a sweep.
    std::vector<Value> values;
  };
  std::vector<Dimension> space;  ///< As stated; missing paths have defaults of their own.
  TuneObjective objective = TuneObjective::time;
  std::optional<Price> price{};  ///< Of a GPU-hour.
  std::int64_t keep = 5;         ///< Number of candidates that are compared over all steps.
};

/// The keys of `tune`.
[[nodiscard]] const std::vector<KeyText>& tune_keys();

/// Reads `tune: {space: {mesh.tp: [1, 2], mesh.capacity: [8Ki, auto], cluster.gpus: [512, 1024], plans: [static]},
/// objective: time, price: 2.10 USD/GPU-hour, keep: 5}`. A space may hold paths below `mesh`, `training`, `cluster`,
/// `kernels` and `memory`, and `plans`: the work itself stays the same. All problems are reported.
[[nodiscard]] TuneOptions read_tune(const Value& tune, Diagnostics& diagnostics);

}  // namespace hdpsim
