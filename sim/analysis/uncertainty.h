#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/analysis/step_result.h"
#include "sim/profile/cost_family.h"

namespace hdpsim {

struct Percentiles {
  double mean = 0;
  double p5 = 0;
  double p50 = 0;
  double p95 = 0;
};

/// The value below which a share `p` (0 to 1) of the values lies, interpolated linearly between neighbours: position p
/// (n - 1) of the sorted values. Requires at least one value (checked).
[[nodiscard]] double percentile(std::vector<double> values, double p);
/// The percentile of one half.
[[nodiscard]] double median(std::vector<double> values);
[[nodiscard]] Percentiles percentiles_of(const std::vector<double>& values);

/// Nodes that are slower than the others for a whole run: each is so with probability `share`, and its kernels then
/// take `slowdown` times as long.
struct SlowNodes {
  double share = 0.005;
  double slowdown = 1.1;
};

/// How a run is resampled.
struct UncertaintyModel {
  std::int64_t samples = 200;
  std::uint64_t seed = 1;
  FamilyErrors errors;
  SlowNodes slow_nodes;
  /// Of a fitted profile: the root of its parameters' correlations (correlation_root()).
  std::vector<std::vector<double>> fitted{};
  std::array<bool, cost_families> of_fitted{};    ///< Families whose errors are those of fitted parameters.
  std::int64_t nodes = 0;                         ///< Of the job.
  std::array<std::string, cost_families> advice;  ///< What to measure to know a family better, by CostFamily.
};

/// The deviations of one sample from the simulated run. All runs of a study see the same samples, so that errors that
/// two plans share cancel out of their ratio.
struct Sample {
  std::array<double, cost_families> factors{};  ///< Measured over predicted time, by CostFamily.
  std::vector<std::size_t> steps;               ///< Steps drawn with replacement from the run's (Efron's bootstrap).
  std::vector<double> slow_nodes;               ///< Where in the job, from 0 to 1, nodes are slow.
  double routes = 0;                            ///< Which of the simulated choices of routes the switches make, 0 to 1.
  std::vector<double> fitted{};                 ///< Fitted parameters, in deviations from their values.
};
[[nodiscard]] Sample draw_sample(const UncertaintyModel& model, std::size_t steps, std::int64_t number);

/// The share of a headline figure's variance that one source causes, to first order.
struct VarianceShare {
  /// A family, "batches" (the draw of sequences, and noise between steps), "slow nodes", "routes" or "fitted
  /// parameters".
  std::string source;
  double share = 0;
  double deviation = 0;  ///< Relative deviation of the mean step time if this were the only source.
};

/// Intervals of a run's headline figures: percentiles over the samples.
struct Uncertainty {
  std::int64_t samples = 0;
  Percentiles step_time_s;  ///< Percentiles of the mean over the steps.
  Percentiles tokens_per_s;
  Percentiles tokens_per_s_per_gpu;
  Percentiles mfu;
  std::optional<Percentiles> speedup;
  std::vector<VarianceShare> shares;  ///< Largest share first.
  std::vector<std::string> unknown;   ///< Families that take time and whose errors are not known: these are left out.
  std::string advice;                 ///< What would narrow the interval most; empty if nothing would.
};

/// What a run's step time depends on: means over the steps where it is known, weighted by their times; zero or empty if
/// no step knows it.
struct Sensitivity {
  std::array<double, cost_families> families{};  ///< Relative change of the step time per relative change of costs.
  std::vector<double> slow_nodes;                ///< Relative change with one slow node, by its place.
  std::vector<double> routes;                    ///< Relative change with other routes.
  std::vector<double> fitted{};                  ///< Relative changes as StepResult::fitted has them.
};
[[nodiscard]] Sensitivity sensitivity_of(const RunResult& result);

/// The mean step time of a run in one sample, in seconds, and its tokens per second. To first order, T = mean of the
/// drawn steps' times x (1 + sum over families of elasticity x (factor - 1) + largest change that one of the slow nodes
/// causes + change with the routes + sum over fitted parameters of the change at the end of the interval on whose side
/// it is, in proportion).
struct SampledRun {
  double step_time_s = 0;
  double tokens_per_s = 0;
  std::int64_t tokens = 0;
};
[[nodiscard]] SampledRun sampled_run(const RunResult& result, const Sensitivity& sensitivity, const Sample& sample);

/// Intervals of a run's figures. `flops_per_s` is the peak of all devices together. `baseline` is the run that
/// speed-ups are stated against, with the same steps (checked), or null. O(samples x steps).
[[nodiscard]] Uncertainty uncertainty_of(const UncertaintyModel& model, const RunResult& result,
                                         const RunResult* baseline, std::int64_t gpus, double flops_per_s);

}  // namespace hdpsim
