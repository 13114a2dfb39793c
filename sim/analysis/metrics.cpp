#include "sim/analysis/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "sim/analysis/memory_verdict.h"
#include "sim/base/check.h"
#include "sim/model/layers.h"
#include "sim/model/mixing.h"
#include "sim/model/parameters.h"
#include "sim/plan/work_model.h"

namespace hdpsim {
namespace {

std::vector<double> step_seconds(const RunResult& result) {
  std::vector<double> seconds;
  seconds.reserve(result.steps.size());
  for (const StepResult& step : result.steps) seconds.push_back(seconds_of(step.time));
  return seconds;
}

Breakdown mean_breakdown(const RunResult& result) {
  BreakdownMean mean;
  for (const StepResult& step : result.steps) mean.add(step.mean);
  return mean.mean();
}

Duration mean_over_steps(const RunResult& result, Duration BusyTimes::*figure) {
  Int128 sum = 0;
  for (const StepResult& step : result.steps) sum += (step.busy.*figure).picoseconds();
  return Duration::picoseconds(static_cast<std::int64_t>(sum / static_cast<std::int64_t>(result.steps.size())));
}

std::array<double, evidence_kinds> evidence_shares(const RunResult& result, double rank_seconds) {
  std::array<double, evidence_kinds> shares{};
  double covered = 0;
  for (std::size_t kind = 0; kind < evidence_kinds; ++kind) {
    if (static_cast<Evidence>(kind) == Evidence::formula) continue;
    for (const StepResult& step : result.steps) shares[kind] += step.evidence[kind].seconds();
    shares[kind] /= rank_seconds;
    covered += shares[kind];
  }
  shares[static_cast<std::size_t>(Evidence::formula)] = std::max(0.0, 1 - covered);
  return shares;
}

// The fullest device of any step, and the largest host memory of any step.
MemoryUse most_memory(const RunResult& result) {
  const auto less = [](const StepResult& a, const StepResult& b) { return a.memory.device < b.memory.device; };
  MemoryUse most = std::max_element(result.steps.begin(), result.steps.end(), less)->memory;
  for (const StepResult& step : result.steps) {
    most.host = std::max(most.host, step.memory.host);
    most.connections = std::max(most.connections, step.memory.connections);
  }
  return most;
}

void add_totals(const RunResult& result, RunMetrics& metrics) {
  metrics.memory = most_memory(result);
  for (const StepResult& step : result.steps) {
    metrics.connections.peers = std::max(metrics.connections.peers, step.connections.peers);
    metrics.connections.groups = std::max(metrics.connections.groups, step.connections.groups);
    metrics.tokens_held = std::max(metrics.tokens_held, step.tokens_held);
    metrics.events += step.events;
    metrics.phases += step.phases;
  }
}

// Empty unless steps say what loads.
std::optional<LoaderMetrics> loaders_of(const RunResult& result) {
  if (!result.steps.front().loaders) return std::nullopt;
  LoaderMetrics metrics;
  for (const StepResult& step : result.steps) {
    const LoaderUse& use = *step.loaders;
    LoaderUse& most = metrics.most;
    most.loaders = std::max(most.loaders, use.loaders);
    most.memory.all = std::max(most.memory.all, use.memory.all);
    most.memory.node = std::max(most.memory.node, use.memory.node);
    most.memory.elsewhere = std::max(most.memory.elsewhere, use.memory.elsewhere);
    most.connections = std::max(most.connections, use.connections);
  }
  metrics.events = result.loader_events;
  const auto count = [&](LoaderEvent::Kind kind) {
    return std::count_if(metrics.events.begin(), metrics.events.end(),
                         [&](const LoaderEvent& event) { return event.kind == kind; });
  };
  metrics.lost = count(LoaderEvent::Kind::lost);
  metrics.promoted = count(LoaderEvent::Kind::promoted);
  return metrics;
}

}  // namespace

std::string sharing_text(const RunInfo& info) {
  return info.cut == "per_document" ? info.sharing : fmt::format("{}, {}", info.sharing, info.cut);
}

Flops model_flops(const Transformer& model, const Batch& batch, double kept, const Recipe& recipe) {
  Flops attention;
  for (const LayerRun& run : layer_runs(model)) {
    const Transformer alike = of_kind(model, run.kind);
    double area = 0;
    Flops scores;
    for (const Sequence& sequence : batch.sequences) {
      area += attention_area(alike, sequence.tokens);
      scores += indexer_flops(alike, sequence.tokens, Direction::forward) +
                indexer_flops(alike, sequence.tokens, Direction::backward);
    }
    const Flops layer =
        attention_flops(alike, area, Direction::forward) + attention_flops(alike, area, Direction::backward);
    attention += (layer + scores) * static_cast<double>(run.count);
  }
  return attention + training_linear_flops(model, batch.tokens(), kept, recipe);
}

RunMetrics metrics_of(const RunInfo& info, const RunResult& result) {
  HDPSIM_CHECK(!result.steps.empty(), "a run of '{}' without a step", info.plan);
  RunMetrics metrics;
  metrics.steps = static_cast<std::int64_t>(result.steps.size());
  metrics.breakdown = mean_breakdown(result);
  const std::vector<double> seconds = step_seconds(result);
  metrics.step_time_s = percentiles_of(seconds);
  metrics.step_time_s.mean = seconds_of(metrics.breakdown.total());  // rounded as the breakdown rounds it

  const double total_s = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  double tokens = 0;
  double flops = 0;
  double bounds_s = 0;
  for (const StepResult& step : result.steps) {
    tokens += static_cast<double>(step.tokens);
    flops += step.model_flops;
    bounds_s += seconds_of(step.bound);
  }
  metrics.bound_s = bounds_s / static_cast<double>(metrics.steps);
  const auto gpus = static_cast<double>(info.gpus);
  metrics.tokens_per_s = tokens / total_s;
  metrics.tokens_per_s_per_gpu = metrics.tokens_per_s / gpus;
  metrics.mfu = flops / (info.peak.per_second() * gpus * total_s);
  metrics.busy = {mean_over_steps(result, &BusyTimes::min), mean_over_steps(result, &BusyTimes::mean),
                  mean_over_steps(result, &BusyTimes::max), mean_over_steps(result, &BusyTimes::deviation)};
  metrics.evidence = evidence_shares(result, total_s * static_cast<double>(result.ranks.size()));
  add_totals(result, metrics);
  metrics.fits = fit_of(metrics.memory, limits_of(info)) != MemoryFit::no && metrics.tokens_held <= info.capacity;
  if (info.errors) {
    const double memory_use = metrics.memory.device.gigabytes() / info.device_memory.gigabytes();
    metrics.confidence = confidence_of(*info.errors, result, metrics.step_time_s.mean, memory_use);
  }
  metrics.loaders = loaders_of(result);
  if (info.failures) metrics.goodput = goodput(*info.failures, info.nodes, metrics.breakdown.total());
  return metrics;
}

double tokens_for_one(std::int64_t baseline, std::int64_t tokens) {
  return baseline > 0 ? static_cast<double>(tokens) / static_cast<double>(baseline) : 1;
}

Speedup speedup_over(const std::string& name, const RunResult& baseline, const RunResult& result) {
  HDPSIM_CHECK(baseline.steps.size() == result.steps.size(), "{} steps against {} of '{}'", result.steps.size(),
               baseline.steps.size(), name);
  const std::vector<double> theirs = step_seconds(baseline);
  const std::vector<double> ours = step_seconds(result);
  std::vector<double> ratios(ours.size());
  std::int64_t our_tokens = 0;
  std::int64_t their_tokens = 0;
  for (std::size_t i = 0; i < ratios.size(); ++i) {
    ratios[i] = theirs[i] / ours[i] * tokens_for_one(baseline.steps[i].tokens, result.steps[i].tokens);
    our_tokens += result.steps[i].tokens;
    their_tokens += baseline.steps[i].tokens;
  }
  const double mean = std::accumulate(theirs.begin(), theirs.end(), 0.0) /
                      std::accumulate(ours.begin(), ours.end(), 0.0) * tokens_for_one(their_tokens, our_tokens);
  return {name, mean, percentile(ratios, 0.05), percentile(ratios, 0.95)};
}

namespace {

// The figures of a run that need its baseline, or say that there is none.
void compare(const std::string& name, const RunResult* baseline, Run& run) {
  if (baseline != nullptr) run.metrics.speedup = speedup_over(name, *baseline, run.result);
  if (baseline != nullptr && baseline != &run.result && run.info.errors) {
    run.metrics.confidence->speedup = speedup_range(*run.info.errors, *baseline, run.result, run.metrics.speedup->mean);
  }
  if (!run.info.uncertainty) return;
  const double peak = run.info.peak.per_second() * static_cast<double>(run.info.gpus);
  run.metrics.uncertainty = uncertainty_of(*run.info.uncertainty, run.result, baseline, run.info.gpus, peak);
}

}  // namespace

std::string refusal_text(const Run& run) {
  if (!run.is_refused()) return {};
  const Position& place = run.info.place;
  const std::string where =
      place.line > 0 ? fmt::format("{}:{}:{}: ", place.file, place.line, place.column) : std::string{};
  return fmt::format("{}{} (step {})", where, run.result.refusal->message, run.result.refusal->step);
}

void evaluate(std::vector<Run>& runs, const std::optional<std::string>& versus) {
  std::map<std::size_t, const RunResult*> baselines;
  for (Run& run : runs) {
    if (run.is_refused()) continue;
    run.metrics = metrics_of(run.info, run.result);
    if (run.info.plan == versus) baselines[run.info.point] = &run.result;
  }
  for (Run& run : runs) {
    if (run.is_refused()) continue;
    const auto baseline = baselines.find(run.info.point);
    compare(versus.value_or(""), baseline == baselines.end() ? nullptr : baseline->second, run);
  }
}

void compare_with(const std::vector<std::shared_ptr<const Run>>& baselines, std::vector<Run>& runs) {
  for (Run& run : runs) {
    if (run.is_refused()) continue;
    run.tuned_baseline = baselines.at(run.info.point);
    compare(run.tuned_baseline->info.plan, &run.tuned_baseline->result, run);
  }
}

void compare_with(const BestStatic& best, Run& run) {
  if (run.is_refused()) return;
  const Run& fastest = *best.run;
  run.best_static = best.run;
  run.metrics.over_best_static = {.speedup = speedup_over(fastest.info.plan, fastest.result, run.result),
                                  .sharing = fastest.info.sharing,
                                  .cut = fastest.info.cut,
                                  .cp = best.cp,
                                  .step_time_s = fastest.metrics.step_time_s.mean};
}

}  // namespace hdpsim
