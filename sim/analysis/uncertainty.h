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

/// The value below which a share `p` (0 to 1) of the values lies, interpolated linearly between neighbours: place p (n
/// - 1) of the sorted values. Requires at least one value (checked).
[[nodiscard]] double percentile(std::vector<double> values, double p);
[[nodiscard]] Percentiles percentiles_of(const std::vector<double>& values);

/// What a run is resampled with.
struct UncertaintyModel {
  std::int64_t samples = 200;
  std::uint64_t seed = 1;
  FamilyErrors errors;
  std::array<std::string, cost_families> advice;  ///< What to measure to know a family better.
};

/// How a sample differs from the run as it was simulated. All runs of a study see the same samples, so that what two
/// plans have in common cancels out of their ratio.
struct Sample {
  std::array<double, cost_families> factors{};  ///< Measured over predicted time; shared by all operations of a family.
  std::vector<std::size_t> steps;               ///< Drawn with replacement from the run's (Efron's bootstrap).
};
[[nodiscard]] Sample draw_sample(const UncertaintyModel& model, std::size_t steps, std::int64_t number);

/// How much of a headline figure's variance one source makes, to first order.
struct VarianceShare {
  std::string source;  ///< A family, or "batches": other sequences, and noise of other steps.
  double share = 0;
  double deviation = 0;  ///< Of the mean step time, relative, if this were the only source.
};

/// Intervals of a run's headline figures: percentiles over the samples.
struct Uncertainty {
  std::int64_t samples = 0;
  Percentiles step_time_s;  ///< Of the mean over the steps.
  Percentiles tokens_per_s;
  Percentiles tokens_per_s_per_gpu;
  Percentiles mfu;
  std::optional<Percentiles> speedup;
  std::vector<VarianceShare> shares;  ///< Largest first.
  std::vector<std::string> unknown;   ///< Families that take time and whose errors nobody knows: counted as exact.
  std::string advice;                 ///< What would narrow the interval most; empty if nothing would.
};

/// Relative change of the step time per relative change of each family's costs: a mean over the steps where it is
/// known, weighted by their times. Zero where it never is.
[[nodiscard]] std::array<double, cost_families> elasticities(const RunResult& result);

/// The mean step time of a run in one sample, in seconds: to first order in the families,
/// T = mean of the drawn steps' times x (1 + sum over families of elasticity x (factor - 1)). Also its tokens a second.
struct SampledRun {
  double step_time_s = 0;
  double tokens_per_s = 0;
};
[[nodiscard]] SampledRun sampled_run(const RunResult& result, const std::array<double, cost_families>& elasticities,
                                     const Sample& sample);

/// `flops_per_s` of all devices at their peak. `baseline` is the run that speed-ups are stated against, with the same
/// steps (checked), or null. O(samples x steps).
[[nodiscard]] Uncertainty uncertainty_of(const UncertaintyModel& model, const RunResult& result,
                                         const RunResult* baseline, std::int64_t gpus, double flops_per_s);

}  // namespace hdpsim
