#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/analysis/goodput.h"
#include "sim/analysis/step_result.h"
#include "sim/analysis/uncertainty.h"
#include "sim/document/document.h"
#include "sim/model/transformer.h"
#include "sim/trace/batch_source.h"

namespace hdpsim {

/// Floating-point operations that the step needs, whoever computes them: attention over the exact causal area of every
/// sequence, forward and backward in all layers, and the linear work of every token. What a plan computes twice or
/// throws away does not count.
[[nodiscard]] Flops model_flops(const Transformer& model, const Batch& batch);

/// What stands still during a run: who ran what on which cluster.
struct RunInfo {
  /// One value of the sweep, by its path in the study.
  struct Coordinate {
    std::string path;
    Value value;
  };
  std::size_t point = 0;                ///< Index of the point in the sweep.
  std::vector<Coordinate> coordinates;  ///< Of the point; empty without a sweep.
  std::string plan;
  std::string setting;  ///< Model, cluster, mesh and batches, in a few words.
  std::string profile;  ///< Its name and label.
  /// What ran beside it all the time.
  struct Neighbour {
    std::string name;
    std::string what;  ///< In a few words.
    std::int64_t gpus = 0;
  };
  std::vector<Neighbour> background;
  std::int64_t gpus = 0;
  std::int64_t stages = 1;                  ///< Of every rank's pipeline.
  FlopRate peak;                            ///< Of one device.
  Bytes device_memory;                      ///< Of one device.
  Bytes host_memory;                        ///< One device's share.
  std::int64_t capacity = 0;                ///< Tokens that a rank holds per micro-batch.
  std::optional<TraceUse> trace{};          ///< Nothing if lengths are drawn.
  std::vector<std::string> not_modelled{};  ///< Keys that the profile would need.
  std::int64_t nodes = 1;                   ///< That fail, if any do:
  std::optional<FailureModel> failures{};
  std::optional<UncertaintyModel> uncertainty{};
};

struct Speedup {
  std::string versus;
  double mean = 1;  ///< Ratio of the mean step times.
  double p5 = 1;    ///< Of the ratios step by step: both plans see the same batches.
  double p95 = 1;
};

/// One row of a result.
struct RunMetrics {
  std::int64_t steps = 0;
  Percentiles step_time_s;
  double tokens_per_s = 0;
  double tokens_per_s_per_gpu = 0;
  double mfu = 0;  ///< model_flops over what the devices could do at their peak in the same time.
  std::optional<Speedup> speedup;
  Breakdown breakdown;        ///< Mean over ranks and steps; sums to the mean step time.
  BusyTimes busy;             ///< Mean over steps of the figures of each step.
  ConnectionUse connections;  ///< The most of any step.
  MemoryUse memory;           ///< Of the step with the fullest device; of host and channels the most of any step.
  bool fits = true;
  std::array<double, evidence_kinds>
      evidence{};  ///< Shares of the rank seconds. What no kernel estimate covers is formula.
  std::uint64_t events = 0;
  PhaseTimes phases;
  std::optional<Goodput> goodput;          ///< At the mean step time; nothing if nodes do not fail.
  std::optional<Uncertainty> uncertainty;  ///< Nothing if it was not asked for.
};

[[nodiscard]] RunMetrics metrics_of(const RunInfo& info, const RunResult& result);
/// Both runs have the same steps (checked).
[[nodiscard]] Speedup speedup_over(const std::string& name, const RunResult& baseline, const RunResult& result);

/// One run of a study, ready to be written.
struct Run {
  RunInfo info;
  RunResult result;
  RunMetrics metrics;
};

/// Fills in the metrics of all runs; each is compared with the run of the plan `versus` at its own point, if that is
/// given.
void evaluate(std::vector<Run>& runs, const std::optional<std::string>& versus);

/// Seconds as the nearest double, so that the shortest decimal that reads back as it shows whole picoseconds.
[[nodiscard]] inline double seconds_of(Duration duration) {
  return static_cast<double>(duration.picoseconds()) / 1e12;
}

}  // namespace hdpsim
