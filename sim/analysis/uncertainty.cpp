#include "sim/analysis/uncertainty.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "sim/analysis/metrics.h"
#include "sim/base/check.h"
#include "sim/base/random.h"

namespace hdpsim {
namespace {

using Factors = std::array<double, cost_families>;

double seconds_of(const StepResult& step) {
  return step.time.seconds();
}

// The place of a number from 0 to 1 among `count` equal parts.
std::size_t part_of(double number, std::size_t count) {
  return std::min(static_cast<std::size_t>(number * static_cast<double>(count)), count - 1);
}

// A step waits for the slow node that delays it most; the others are hidden behind that.
double change_by_slow_nodes(const Sensitivity& sensitivity, const Sample& sample) {
  const std::vector<double>& changes = sensitivity.slow_nodes;
  if (changes.empty() || sample.slow_nodes.empty()) return 0;
  double largest = -std::numeric_limits<double>::infinity();
  for (const double place : sample.slow_nodes) largest = std::max(largest, changes[part_of(place, changes.size())]);
  return largest;
}

// The routes that were simulated are as likely as each of the others.
double change_by_routes(const Sensitivity& sensitivity, const Sample& sample) {
  const std::vector<double>& changes = sensitivity.routes;
  const std::size_t choice = part_of(sample.routes, changes.size() + 1);
  return choice == 0 ? 0 : changes[choice - 1];
}

// A parameter's step is a line from its value to either end of its interval, and beyond.
double change_by_fitted(const Sensitivity& sensitivity, const Sample& sample) {
  constexpr double end_of_interval = 1.6449;  // deviations: 90 % of a normal distribution lie between
  double change = 0;
  for (std::size_t i = 0; i < sample.fitted.size() && 2 * i + 1 < sensitivity.fitted.size(); ++i) {
    const double z = sample.fitted[i];
    change += std::abs(z) / end_of_interval * sensitivity.fitted[2 * i + (z < 0 ? 0 : 1)];
  }
  return change;
}

double factor_of(const Sensitivity& sensitivity, const Sample& sample) {
  double factor = 1 + change_by_slow_nodes(sensitivity, sample) + change_by_routes(sensitivity, sample) +
                  change_by_fitted(sensitivity, sample);
  for (std::size_t family = 0; family < cost_families; ++family) {
    factor += sensitivity.families[family] * (sample.factors[family] - 1);
  }
  return std::max(0.0, factor);
}

double deviation_of(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / count);
}

// Adds what a step knows of each place; a step knows all places or none.
void add_seconds(const std::vector<Duration>& changes, std::vector<double>& sums) {
  sums.resize(std::max(sums.size(), changes.size()));
  for (std::size_t i = 0; i < changes.size(); ++i) sums[i] += changes[i].seconds();
}

// The relative standard error of the mean of the steps' times.
double deviation_of_batches(const RunResult& result) {
  const auto count = static_cast<double>(result.steps.size());
  double sum = 0;
  double squares = 0;
  for (const StepResult& step : result.steps) {
    sum += seconds_of(step);
    squares += seconds_of(step) * seconds_of(step);
  }
  const double mean = sum / count;
  return std::sqrt(std::max(0.0, squares / count - mean * mean) / count) / mean;
}

constexpr char batches[] = "batches";
constexpr char slow_nodes[] = "slow nodes";
constexpr char routes[] = "routes";
constexpr char fitted_parameters[] = "fitted parameters";

std::vector<VarianceShare> shares_of(const UncertaintyModel& model, const RunResult& result,
                                     const Sensitivity& sensitivity, const std::vector<Sample>& samples) {
  std::vector<VarianceShare> shares{{batches, 0, deviation_of_batches(result)}};
  const auto add = [&](std::string source, double deviation) {
    if (deviation > 0) shares.push_back({std::move(source), 0, deviation});
  };
  for (std::size_t family = 0; family < cost_families; ++family) {
    add(std::string(cost_family_name(static_cast<CostFamily>(family))),
        std::abs(sensitivity.families[family]) * model.errors[family].deviation());
  }
  std::vector<double> by_slow_nodes;
  std::vector<double> by_routes;
  std::vector<double> by_fitted;
  for (const Sample& sample : samples) {
    by_slow_nodes.push_back(change_by_slow_nodes(sensitivity, sample));
    by_routes.push_back(change_by_routes(sensitivity, sample));
    by_fitted.push_back(change_by_fitted(sensitivity, sample));
  }
  add(slow_nodes, deviation_of(by_slow_nodes));
  add(routes, deviation_of(by_routes));
  add(fitted_parameters, deviation_of(by_fitted));
  double variance = 0;
  for (const VarianceShare& each : shares) variance += each.deviation * each.deviation;
  for (VarianceShare& each : shares) each.share = variance > 0 ? each.deviation * each.deviation / variance : 0;
  std::stable_sort(shares.begin(), shares.end(),
                   [](const VarianceShare& a, const VarianceShare& b) { return a.share > b.share; });
  return shares;
}

// The share of the step below which an unknown error does not matter.
constexpr double little = 0.01;

// The families whose errors are unknown, the one that takes most first.
std::vector<CostFamily> unknown_families(const UncertaintyModel& model, const Factors& elasticities) {
  std::vector<CostFamily> unknown;
  for (std::size_t family = 0; family < cost_families; ++family) {
    const bool matters = std::abs(elasticities[family]) >= little;
    const bool is_known = model.errors[family].known() || model.of_fitted[family];
    if (matters && !is_known) unknown.push_back(static_cast<CostFamily>(family));
  }
  std::stable_sort(unknown.begin(), unknown.end(), [&](CostFamily a, CostFamily b) {
    return std::abs(elasticities[static_cast<std::size_t>(a)]) > std::abs(elasticities[static_cast<std::size_t>(b)]);
  });
  return unknown;
}

// An unknown error comes before the largest of the known ones.
std::string advice_of(const UncertaintyModel& model, const std::vector<CostFamily>& unknown,
                      const VarianceShare& largest) {
  if (!unknown.empty()) return model.advice[static_cast<std::size_t>(unknown.front())];
  if (largest.deviation == 0) return {};
  for (std::size_t family = 0; family < cost_families; ++family) {
    if (largest.source == cost_family_name(static_cast<CostFamily>(family))) return model.advice[family];
  }
  if (largest.source == slow_nodes) return "time each node by itself and leave out those that are slow";
  if (largest.source == fitted_parameters) return "measure more steps: hdpsim calibrate --from-steps --next says which";
  if (largest.source == routes) return "choose routes packet by packet (cluster.routing: adaptive)";
  return "simulate more steps (data.steps)";
}

// The nodes of which one in 1 / share is slow, by the gaps between them; a few dozen of them are as good as all.
std::vector<double> drawn_slow_nodes(const UncertaintyModel& model, std::uint64_t number) {
  constexpr std::size_t enough = 64;
  std::vector<double> places;
  if (model.slow_nodes.share <= 0) return places;
  RandomStream random(model.seed, "uncertainty of slow nodes", number);
  const auto nodes = static_cast<double>(model.nodes);
  const double log_of_others = std::log1p(-model.slow_nodes.share);
  for (double node = -1; places.size() < enough;) {
    node += 1 + std::floor(std::log1p(-random.uniform()) / log_of_others);
    if (node >= nodes) break;
    places.push_back(random.uniform());
  }
  return places;
}

// The fitted parameters of one sample, correlated as the fit's rows leave them.
std::vector<double> drawn_parameters(const UncertaintyModel& model, std::uint64_t number) {
  RandomStream random(model.seed, "uncertainty of fitted parameters", number);
  std::vector<double> independent;
  std::vector<double> drawn;
  for (const std::vector<double>& row : model.fitted) {
    independent.push_back(random.normal());
    drawn.push_back(std::inner_product(row.begin(), row.end(), independent.begin(), 0.0));
  }
  return drawn;
}

}  // namespace

double percentile(std::vector<double> values, double p) {
  HDPSIM_CHECK(!values.empty() && p >= 0 && p <= 1, "percentile {} of {} values", p, values.size());
  std::sort(values.begin(), values.end());
  const double place = p * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
}

double median(std::vector<double> values) {
  return percentile(std::move(values), 0.5);
}

Percentiles percentiles_of(const std::vector<double>& values) {
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  return {mean, percentile(values, 0.05), percentile(values, 0.5), percentile(values, 0.95)};
}

Sample draw_sample(const UncertaintyModel& model, std::size_t steps, std::int64_t number) {
  Sample sample;
  RandomStream families(model.seed, "uncertainty of families", static_cast<std::uint64_t>(number));
  for (std::size_t family = 0; family < cost_families; ++family) {
    const double fit = families.uniform();
    const double quantile = families.uniform();
    sample.factors[family] = model.errors[family].factor(fit, quantile, families.normal());
  }
  RandomStream steps_drawn(model.seed, "uncertainty of batches", static_cast<std::uint64_t>(number));
  sample.steps.reserve(steps);
  for (std::size_t i = 0; i < steps; ++i) sample.steps.push_back(steps_drawn.below(steps));
  sample.slow_nodes = drawn_slow_nodes(model, static_cast<std::uint64_t>(number));
  sample.routes = RandomStream(model.seed, "uncertainty of routes", static_cast<std::uint64_t>(number)).uniform();
  sample.fitted = drawn_parameters(model, static_cast<std::uint64_t>(number));
  return sample;
}

Sensitivity sensitivity_of(const RunResult& result) {
  Sensitivity found;
  double seconds = 0;
  for (const StepResult& step : result.steps) {
    if (step.slopes.empty()) continue;
    for (std::size_t family = 0; family < cost_families; ++family) {
      found.families[family] += step.slopes.at(family).seconds();
    }
    add_seconds(step.slow_nodes, found.slow_nodes);
    add_seconds(step.routes, found.routes);
    add_seconds(step.fitted, found.fitted);
    seconds += seconds_of(step);
  }
  const double scale = seconds > 0 ? 1 / seconds : 0;
  for (double& sum : found.families) sum *= scale;
  for (double& sum : found.slow_nodes) sum *= scale;
  for (double& sum : found.routes) sum *= scale;
  for (double& sum : found.fitted) sum *= scale;
  return found;
}

SampledRun sampled_run(const RunResult& result, const Sensitivity& sensitivity, const Sample& sample) {
  double seconds = 0;
  std::int64_t tokens = 0;
  for (const std::size_t step : sample.steps) {
    seconds += seconds_of(result.steps[step]);
    tokens += result.steps[step].tokens;
  }
  seconds *= factor_of(sensitivity, sample);
  return {seconds / static_cast<double>(sample.steps.size()), static_cast<double>(tokens) / seconds, tokens};
}

Uncertainty uncertainty_of(const UncertaintyModel& model, const RunResult& result, const RunResult* baseline,
                           std::int64_t gpus, double flops_per_s) {
  HDPSIM_CHECK(baseline == nullptr || baseline->steps.size() == result.steps.size(), "{} steps against {}",
               result.steps.size(), baseline->steps.size());
  const Sensitivity ours = sensitivity_of(result);
  const Sensitivity theirs = baseline == nullptr ? Sensitivity{} : sensitivity_of(*baseline);
  std::vector<Sample> samples;
  std::vector<double> times;
  std::vector<double> rates;
  std::vector<double> utilisations;
  std::vector<double> ratios;
  for (std::int64_t number = 0; number < model.samples; ++number) {
    const Sample& sample = samples.emplace_back(draw_sample(model, result.steps.size(), number));
    const SampledRun run = sampled_run(result, ours, sample);
    times.push_back(run.step_time_s);
    rates.push_back(run.tokens_per_s);
    double flops = 0;
    for (const std::size_t step : sample.steps) flops += result.steps[step].model_flops;
    utilisations.push_back(flops / (flops_per_s * run.step_time_s * static_cast<double>(sample.steps.size())));
    if (baseline == nullptr) continue;
    const SampledRun other = sampled_run(*baseline, theirs, sample);
    ratios.push_back(other.step_time_s / run.step_time_s * tokens_for_one(other.tokens, run.tokens));
  }
  Uncertainty uncertainty;
  uncertainty.samples = model.samples;
  uncertainty.step_time_s = percentiles_of(times);
  uncertainty.tokens_per_s = percentiles_of(rates);
  for (double& rate : rates) rate /= static_cast<double>(gpus);
  uncertainty.tokens_per_s_per_gpu = percentiles_of(rates);
  uncertainty.mfu = percentiles_of(utilisations);
  if (baseline != nullptr) uncertainty.speedup = percentiles_of(ratios);
  uncertainty.shares = shares_of(model, result, ours, samples);
  const std::vector<CostFamily> unknown = unknown_families(model, ours.families);
  for (const CostFamily family : unknown) uncertainty.unknown.emplace_back(cost_family_name(family));
  uncertainty.advice = advice_of(model, unknown, uncertainty.shares.front());
  return uncertainty;
}

}  // namespace hdpsim
