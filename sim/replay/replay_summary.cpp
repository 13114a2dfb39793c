#include "sim/replay/replay_summary.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/base/check.h"

namespace hdpsim {
namespace {

constexpr std::size_t most_stretches = 5;
constexpr std::int64_t points_of_curve = 400;
constexpr double picoseconds_per_second = 1e12;

double seconds_of_sum(Int128 picoseconds) {
  return static_cast<double>(picoseconds) / picoseconds_per_second;
}

double ratio(Int128 of, Int128 to) {
  return static_cast<double>(of) / static_cast<double>(to);
}

// Slowest first; among equally slow steps the earlier ones.
bool is_worse(const StepRow& a, const StepRow& b) {
  return a.time_s != b.time_s ? a.time_s > b.time_s : a.step < b.step;
}

void keep_worst(std::vector<StepRow>& worst, const StepRow& row, std::size_t count) {
  worst.insert(std::upper_bound(worst.begin(), worst.end(), row, is_worse), row);
  if (worst.size() > count) worst.pop_back();
}

bool fits(const StepRow& row, const ReplayRules& rules) {
  return row.device_gb <= rules.device_gb && row.host_gb <= rules.host_gb;
}

// The fastest plan among those that fit, if any does.
std::size_t fastest_of(const std::vector<StepRow>& rows, const ReplayRules& rules) {
  const auto faster = [&](const StepRow& a, const StepRow& b) {
    return std::pair(!fits(a, rules), a.time_s) < std::pair(!fits(b, rules), b.time_s);
  };
  return static_cast<std::size_t>(std::min_element(rows.begin(), rows.end(), faster) - rows.begin());
}

}  // namespace

void ReplayFold::Sums::add(const Kept& step, std::size_t plan, std::size_t baseline) {
  ++steps;
  time_ps += step.time_ps[plan];
  baseline_ps += step.time_ps[baseline];
  most_ps = std::max(most_ps, step.time_ps[plan]);
  group_wait_s += step.group_wait_s[plan];
  batch.sequences += step.batch.sequences;
  batch.tokens += step.batch.tokens;
  batch.longest = std::max(batch.longest, step.batch.longest);
  squares += step.batch.squares();
}

WindowRow ReplayFold::Sums::row(std::int64_t last, std::size_t plan) const {
  const auto tokens = static_cast<double>(batch.tokens);
  return {.first = last - steps + 1,
          .last = last,
          .plan = plan,
          .mean_s = seconds_of_sum(time_ps) / static_cast<double>(steps),
          .max_s = seconds_of_sum(most_ps),
          .speedup = ratio(baseline_ps, time_ps),
          .group_wait_share = group_wait_s / seconds_of_sum(time_ps),
          .mean_length = tokens / static_cast<double>(batch.sequences),
          .weighted_length = squares / tokens,
          .longest = batch.longest};
}

ReplayFold::ReplayFold(const ReplayRules& rules, std::function<void(const WindowRow&)> window_done)
    : rules_(rules), window_done_(std::move(window_done)), plans_(rules.plans) {
  HDPSIM_CHECK(rules.steps >= 1 && rules.plans >= 1 && rules.baseline < rules.plans && rules.window >= 1,
               "{} steps, {} plans, baseline {}, window {}", rules.steps, rules.plans, rules.baseline, rules.window);
  rules_.window = std::min(rules.window, rules.steps);
  summary_.rules = rules_;
}

void ReplayFold::add(const std::vector<StepRow>& rows) {
  HDPSIM_CHECK(rows.size() == rules_.plans && rows[0].step == steps_ && steps_ < rules_.steps,
               "{} rows of step {}; step {} of {} follows", rows.size(), rows.empty() ? -1 : rows[0].step, steps_,
               rules_.steps);
  const StepRow& fastest = rows[fastest_of(rows, rules_)];
  if (fits(fastest, rules_)) ++plans_[fastest.plan].summary.fastest;
  best_ps_ += std::llround(fastest.time_s * picoseconds_per_second);
  const BatchFigures& batch = rows[0].batch;
  summary_.lengths.sequences += batch.sequences;
  summary_.lengths.tokens += batch.tokens;
  summary_.lengths.longest = std::max(summary_.lengths.longest, batch.longest);
  squares_ += batch.squares();
  add_to_series(rows);
  for (const StepRow& row : rows) add_plan(row, rows[rules_.baseline]);
  keep(rows);
  ++steps_;
  for (std::size_t plan = 0; plan < rules_.plans; ++plan) look_at_window(plan);
  if (steps_ % rules_.window == 0) end_window(rules_.window);
}

void ReplayFold::add_plan(const StepRow& row, const StepRow& baseline) {
  PlanState& plan = plans_[row.plan];
  PlanSummary& summary = plan.summary;
  plan.sum_ps += std::llround(row.time_s * picoseconds_per_second);
  summary.time_s.add(row.time_s);
  summary.speedups.add(baseline.time_s / row.time_s);
  for (std::size_t i = 0; i < activity_count; ++i) summary.breakdown_s[i] += row.breakdown_s[i];
  summary.device_gb = std::max(summary.device_gb, row.device_gb);
  summary.host_gb = std::max(summary.host_gb, row.host_gb);
  summary.does_not_fit += fits(row, rules_) ? 0 : 1;
  summary.device_at_most_gb = std::max(summary.device_at_most_gb, row.device_at_most_gb);
  summary.at_risk += fits(row, rules_) && row.device_at_most_gb > rules_.device_gb ? 1 : 0;
  keep_worst(summary.worst, row, rules_.worst);
}

void ReplayFold::keep(const std::vector<StepRow>& rows) {
  Kept kept{rows[0].batch, {}, {}};
  for (const StepRow& row : rows) {
    kept.time_ps.push_back(std::llround(row.time_s * picoseconds_per_second));
    kept.group_wait_s.push_back(row.breakdown_s[index_of(Activity::group_wait)]);
  }
  const bool full = std::ssize(window_) == rules_.window;
  for (std::size_t plan = 0; plan < rules_.plans; ++plan) {
    plans_[plan].window_ps += kept.time_ps[plan] - (full ? window_.front().time_ps[plan] : 0);
  }
  if (full) window_.pop_front();
  window_.push_back(std::move(kept));
}

// A window that ends with this step and is below the threshold begins a stretch or extends one.
void ReplayFold::look_at_window(std::size_t plan) {
  if (plan == rules_.baseline || steps_ < rules_.window) return;
  PlanState& state = plans_[plan];
  const double speedup = ratio(plans_[rules_.baseline].window_ps, state.window_ps);
  const std::int64_t last = steps_ - 1;
  const std::int64_t first = steps_ - rules_.window;
  if (!state.summary.least || speedup < state.summary.least->speedup) {
    state.summary.least = sums_of_last(rules_.window, plan).row(last, plan);
  }
  if (state.open && first > state.open->last + 1) close(state);
  if (speedup >= rules_.threshold) return;
  if (!state.open) {
    const Sums sums = sums_of_last(rules_.window, plan);
    state.open = OpenStretch{sums, last, sums.row(last, plan)};
    return;
  }
  for (std::int64_t step = state.open->last + 1; step <= last; ++step) {
    state.open->all.add(window_[static_cast<std::size_t>(step - first)], plan, rules_.baseline);
  }
  state.open->last = last;
  if (speedup < state.open->lowest.speedup) {
    state.open->lowest = sums_of_last(rules_.window, plan).row(last, plan);
  }
}

void ReplayFold::close(PlanState& plan) {
  const OpenStretch open = *std::exchange(plan.open, std::nullopt);
  PlanSummary& summary = plan.summary;
  ++summary.stretches;
  summary.steps_in_them += open.all.steps;
  const auto higher = [](const Stretch& a, const Stretch& b) { return a.lowest.speedup < b.lowest.speedup; };
  const Stretch stretch{open.all.row(open.last, open.lowest.plan), open.lowest};
  summary.lowest.insert(std::upper_bound(summary.lowest.begin(), summary.lowest.end(), stretch, higher), stretch);
  if (summary.lowest.size() > most_stretches) summary.lowest.pop_back();
}

ReplayFold::Sums ReplayFold::sums_of_last(std::int64_t steps, std::size_t plan) const {
  Sums sums;
  for (auto step = window_.end() - steps; step != window_.end(); ++step) sums.add(*step, plan, rules_.baseline);
  return sums;
}

void ReplayFold::end_window(std::int64_t steps) {
  for (std::size_t plan = 0; plan < rules_.plans; ++plan) {
    window_done_(sums_of_last(steps, plan).row(steps_ - 1, plan));
  }
  if (steps < rules_.window) return;  // too short to compare
  const WindowRow row = sums_of_last(steps, rules_.baseline).row(steps_ - 1, rules_.baseline);
  const bool is_first = steps_ == rules_.window;
  if (is_first || row.weighted_length < summary_.shortest.weighted_length) summary_.shortest = row;
  if (is_first || row.weighted_length > summary_.longest.weighted_length) summary_.longest = row;
}

void ReplayFold::add_to_series(const std::vector<StepRow>& rows) {
  const std::int64_t points = std::min(points_of_curve, rules_.steps);
  const auto point_of = [&](std::int64_t step) {
    return static_cast<std::int64_t>(Int128{step} * points / rules_.steps);
  };
  auto& series = summary_.series;
  if (point_of(steps_) == std::ssize(series)) {
    series.push_back({steps_, steps_, {}, 0});
    for (const StepRow& row : rows) series.back().plans.push_back({row.time_s, 0, row.time_s});
  }
  SeriesPoint& point = series.back();
  point.last = steps_;
  const auto count = static_cast<double>(point.last - point.first + 1);
  const auto add_to_mean = [&](double& mean, double value) { mean += (value - mean) / count; };
  for (const StepRow& row : rows) {
    SeriesPoint::Band& band = point.plans[row.plan];
    band.least_s = std::min(band.least_s, row.time_s);
    band.most_s = std::max(band.most_s, row.time_s);
    add_to_mean(band.mean_s, row.time_s);
  }
  add_to_mean(point.weighted_length, rows[0].batch.weighted_length);
}

ReplaySummary ReplayFold::finish() {
  HDPSIM_CHECK(steps_ == rules_.steps, "{} of {} steps", steps_, rules_.steps);
  if (const std::int64_t rest = steps_ % rules_.window; rest > 0) end_window(rest);
  const auto steps = static_cast<double>(steps_);
  for (PlanState& plan : plans_) {
    if (plan.open) close(plan);
    PlanSummary& summary = plan.summary;
    summary.mean_s = seconds_of_sum(plan.sum_ps) / steps;
    summary.speedup = ratio(plans_[rules_.baseline].sum_ps, plan.sum_ps);
    for (double& seconds : summary.breakdown_s) seconds /= steps;
    const auto earlier = [](const Stretch& a, const Stretch& b) { return a.all.first < b.all.first; };
    std::sort(summary.lowest.begin(), summary.lowest.end(), earlier);
    summary_.plans.push_back(std::move(summary));
  }
  summary_.best_mean_s = seconds_of_sum(best_ps_) / steps;
  summary_.lengths.weighted_length = squares_ / static_cast<double>(summary_.lengths.tokens);
  return std::move(summary_);
}

}  // namespace hdpsim
