#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/analysis/confidence.h"
#include "sim/analysis/goodput.h"
#include "sim/analysis/step_result.h"
#include "sim/analysis/uncertainty.h"
#include "sim/cluster/pods.h"
#include "sim/document/document.h"
#include "sim/model/recipe.h"
#include "sim/model/transformer.h"
#include "sim/trace/batch_source.h"

namespace hdpsim {

/// Floating-point operations that the step needs: attention over the exact causal area of every sequence, forward and
/// backward in all layers, and the linear work of every token. Work that a plan repeats or throws away does not count,
/// nor that of copies of tokens which experts drop: `kept` is the share that they keep (kept_copies()).
[[nodiscard]] Flops model_flops(const Transformer& model, const Batch& batch, double kept = 1,
                                const Recipe& recipe = {});

/// The facts of a run that do not change during it: who ran what on which cluster.
struct RunInfo {
  /// One value of the sweep, by its path in the study.
  struct Coordinate {
    std::string path;
    Value value;
  };
  std::size_t point = 0;                ///< Index of the point in the sweep.
  std::vector<Coordinate> coordinates;  ///< Coordinates of the point; empty without a sweep.
  std::string plan;
  Position place{};     ///< The plan's entry in the study.
  std::string setting;  ///< Model, cluster, mesh and batches, in a few words.
  std::string tuned{};  ///< What a search has chosen for this run instead of the study's mesh; empty: nothing.
  std::string profile;  ///< Name and label of the profile.
  /// A job that ran at the same time throughout.
  struct Neighbour {
    std::string name;
    std::string what;  ///< The job in a few words.
    std::int64_t gpus = 0;
  };
  std::vector<Neighbour> background;
  std::int64_t gpus = 0;
  std::int64_t stages = 1;                  ///< Stages of every rank's pipeline.
  FlopRate peak;                            ///< Peak rate of one device.
  Bytes device_memory;                      ///< Memory of one device.
  Bytes host_memory;                        ///< One device's share of the host memory.
  std::int64_t capacity = 0;                ///< Tokens that a rank holds per micro-batch.
  std::optional<TraceUse> trace{};          ///< Empty if lengths are drawn.
  std::vector<std::string> not_modelled{};  ///< Keys that the profile would need for what is not modelled.
  std::int64_t nodes = 1;                   ///< Nodes that can fail.
  /// How its groups are spread over pods. Empty unless the study states nodes, in a cluster of several pods.
  struct Placed {
    PodSpread spread;
    double score = 0;  ///< PodSpread::score() with the study's `mesh.nodes.alpha`.
    double gap = 0;    ///< ChosenNodes::gap.
  };
  std::optional<Placed> placed{};
  std::optional<FailureModel> failures{};
  std::optional<UncertaintyModel> uncertainty{};
  std::optional<RunErrors> errors{};  ///< Empty where nothing was published of any run.
  /// How groups share a sequence, in the words of `mesh.cp_comm_type` and `mesh.cp_cut`.
  std::string sharing{};
  std::string cut{};
};

/// "p2p", or with a cut that is not the usual one "all_gather, dispatch".
[[nodiscard]] std::string sharing_text(const RunInfo& info);

struct Speedup {
  std::string versus;
  double mean = 1;  ///< Ratio of the mean step times; of a token's, where the plans train different numbers of tokens.
  double p5 = 1;    ///< Percentile of such ratios step by step: both plans read the same batches.
  double p95 = 1;
};

/// The speed-up over the fastest plan `static` of the same tp and pp, whichever way its groups share a sequence.
struct BestStaticSpeedup {
  Speedup speedup;
  std::string sharing;  ///< How its groups share a sequence, as in RunInfo, ...
  std::string cut;
  std::int64_t cp = 1;     ///< ... and how many ranks they have.
  double step_time_s = 0;  ///< Its mean step time.
};

/// The loaders of a run.
struct LoaderMetrics {
  LoaderUse most;             ///< Each figure of its steps with the most.
  std::int64_t lost = 0;      ///< Loaders that died without a shadow.
  std::int64_t promoted = 0;  ///< Shadows that took over.
  std::vector<LoaderEvent> events;
};

/// One row of a result.
struct RunMetrics {
  std::int64_t steps = 0;
  Percentiles step_time_s;
  double tokens_per_s = 0;
  double tokens_per_s_per_gpu = 0;
  double bound_s = 0;  ///< Mean over the steps of StepResult::bound.
  /// Model FLOPs utilization: model_flops over what the devices could do at their peak in the same time.
  double mfu = 0;
  std::optional<Speedup> speedup;
  std::optional<BestStaticSpeedup> over_best_static;  ///< Empty unless speed-ups are over `static` as stated.
  Breakdown breakdown;                                ///< Mean over ranks and steps; sums to the mean step time.
  BusyTimes busy;                                     ///< Mean over steps of each step's figures.
  ConnectionUse connections;                          ///< The maximum over the steps.
  /// Memory in the step with the fullest device; for host and channels the maximum over the steps.
  MemoryUse memory;
  std::int64_t tokens_held = 0;  ///< The maximum over the steps.
  bool fits = true;              ///< The memory of devices and hosts, and the capacity.
  std::array<double, evidence_kinds>
      evidence{};  ///< Shares of the rank seconds. Time that no kernel estimate covers counts as formula.
  std::uint64_t events = 0;
  PhaseTimes phases;
  std::optional<LoaderMetrics> loaders;    ///< Empty unless the study names sources.
  std::optional<Goodput> goodput;          ///< At the mean step time; empty if nodes do not fail.
  std::optional<Uncertainty> uncertainty;  ///< Empty if it was not asked for.
  std::optional<Confidence> confidence;    ///< Empty where nothing was published of any run.
};

[[nodiscard]] RunMetrics metrics_of(const RunInfo& info, const RunResult& result);
/// The tokens that are trained for each one of the baseline, by which speed-ups count: 1 unless a plan holds sequences
/// back, and without tokens.
[[nodiscard]] double tokens_for_one(std::int64_t baseline, std::int64_t tokens);
/// The speedup of `result` over `baseline`. Both runs have the same steps (checked).
[[nodiscard]] Speedup speedup_over(const std::string& name, const RunResult& baseline, const RunResult& result);

/// One run of a study with its metrics, ready to be written. A run that was refused has no metrics.
struct Run {
  RunInfo info;
  RunResult result;
  RunMetrics metrics;
  /// The baseline of the speed-up if it has a mesh of its own; null: it is a run of the study.
  std::shared_ptr<const Run> tuned_baseline{};
  /// What `over_best_static` is over: a run of the study, or an extra one, "static (a2a)". Null: nothing.
  std::shared_ptr<const Run> best_static{};

  [[nodiscard]] bool is_refused() const { return result.refusal.has_value(); }
  /// Whether `best_static` is none of the study's runs.
  [[nodiscard]] bool is_over_another_static() const {
    return best_static != nullptr && metrics.speedup && best_static->info.plan != metrics.speedup->versus;
  }
};

/// "study.yaml:11:5: verl makes a micro-batch of 9,000 tokens, ... (step 3)" of a run that was refused; empty of
/// others.
[[nodiscard]] std::string refusal_text(const Run& run);

/// Fills in the metrics of all runs that were not refused; each is compared with the run of the plan `versus` at its
/// own point, if `versus` is given and was not refused there.
void evaluate(std::vector<Run>& runs, const std::optional<std::string>& versus);
/// Compares all runs, which have been evaluated, with other baselines: one a point, in the order of the points.
void compare_with(const std::vector<std::shared_ptr<const Run>>& baselines, std::vector<Run>& runs);

/// The fastest `static` of a point.
struct BestStatic {
  std::shared_ptr<const Run> run;
  std::int64_t cp = 1;  ///< The ranks of its groups.
};
/// Compares a run that has been evaluated with it; one that was refused stays as it is.
void compare_with(const BestStatic& best, Run& run);

/// Seconds as the nearest double, whose shortest decimal shows whole picoseconds.
[[nodiscard]] inline double seconds_of(Duration duration) {
  return static_cast<double>(duration.picoseconds()) / 1e12;
}

}  // namespace hdpsim
