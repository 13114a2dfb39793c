#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/base/quantity_text.h"
#include "sim/document/json.h"
#include "sim/page/page.h"
#include "sim/page/page_files.h"
#include "sim/replay/replay_report.h"
#include "sim/replay/replay_text.h"
#include "sim/report/page/page_data.h"

namespace hdpsim {
namespace {

constexpr std::array shown_quantiles = {0.05, 0.5, 0.95, 0.99, 1.0};

Json plan_data(const ReplayResult& result, std::size_t index) {
  const PlanSummary& plan = result.summary.plans[index];
  const std::optional<double> over_best = over_best_static(result, index);
  Json quantiles = Json::array();
  for (const double p : shown_quantiles) quantiles.push_back(rounded(plan.time_s.quantile(p)));
  Json breakdown = Json::array();
  for (const double seconds : plan.breakdown_s) breakdown.push_back(rounded(seconds));
  return {{"plan", result.plans[index]},
          {"mean", rounded(plan.mean_s)},
          {"quantiles", quantiles},
          {"speedup",
           {rounded(plan.speedup), rounded(plan.speedups.quantile(0.05)), rounded(plan.speedups.quantile(0.95))}},
          {"over_best", over_best ? Json(rounded(*over_best)) : Json()},
          {"fastest", plan.fastest},
          {"unfit", unfit_text(result, index)},
          {"risk", risk_text(result, index)},
          {"breakdown", breakdown}};
}

// [first step, last step, length of a token's sequence, [least, mean, most] of each plan]
Json series_json(const ReplaySummary& summary) {
  Json series = Json::array();
  for (const SeriesPoint& point : summary.series) {
    Json bands = Json::array();
    for (const SeriesPoint::Band& band : point.plans) {
      bands.push_back({rounded(band.least_s), rounded(band.mean_s), rounded(band.most_s)});
    }
    series.push_back({point.first, point.last, rounded(point.weighted_length), bands});
  }
  return series;
}

Json leads_json(const ReplayResult& result) {
  Json leads = Json::array();
  for (std::size_t plan = 0; plan < result.plans.size(); ++plan) {
    if (plan == result.summary.rules.baseline) continue;
    Json stretches = Json::array();
    for (const Stretch& stretch : result.summary.plans[plan].lowest) {
      stretches.push_back(
          {{"first", stretch.all.first}, {"last", stretch.all.last}, {"text", stretch_sentence(result, stretch)}});
    }
    leads.push_back({{"plan", result.plans[plan]}, {"text", lead_sentence(result, plan)}, {"stretches", stretches}});
  }
  return leads;
}

Json slowest_json(const ReplayResult& result) {
  Json slowest = Json::array();
  for (std::size_t plan = 0; plan < result.plans.size(); ++plan) {
    Json steps = Json::array();
    for (const StepCause& cause : result.worst[plan]) steps.push_back(step_sentence(result, cause));
    slowest.push_back({{"plan", result.plans[plan]}, {"steps", steps}});
  }
  return slowest;
}

// The fastest plan of those that fit in all steps, against the baseline; then whether another one wins some steps.
std::string lead_of(const ReplayResult& result) {
  const ReplaySummary& summary = result.summary;
  const std::size_t best = best_plan(result);
  const PlanSummary& plan = summary.plans[best];
  if (plan.does_not_fit > 0) return best_sentence(result);
  std::string text = fmt::format("{} takes {} a step on the mean of {} steps", result.plans[best],
                                 seconds_text(plan.mean_s), summary.rules.steps);
  if (best != summary.rules.baseline) {
    const double baseline_s = summary.plans[summary.rules.baseline].mean_s;
    text += fmt::format(", {} {}: {:.2f} times as fast", baseline_of(result), seconds_text(baseline_s), plan.speedup);
  }
  if (const auto over_best = over_best_static(result, best);
      over_best && result.best_static->plan != baseline_of(result)) {
    text += fmt::format(", and {:.2f} times as fast as {}, the best static mesh of its tp and pp", *over_best,
                        result.best_static->plan);
  }
  return text + ". " + best_sentence(result);
}

Json page_json(const ReplayResult& result) {
  Json plans = Json::array();
  for (std::size_t plan = 0; plan < result.plans.size(); ++plan) plans.push_back(plan_data(result, plan));
  Json notes = Json::array({"Costs are those of " + result.profile + "."});
  for (const RefusedPlan& refused : result.refused) notes.push_back(refusal_text(refused));
  if (result.best_static) notes.push_back(best_static_sentence(result));
  return {{"plans", result.plans},
          {"colors", plan_colors(result.plans)},
          {"activities", activity_names()},
          {"definitions", definitions(result.plans)},
          {"setting", result.setting},
          {"profile", result.profile},
          {"steps", result.summary.rules.steps},
          {"baseline", baseline_of(result)},
          {"answer", {{"lead", lead_of(result)}, {"notes", notes}}},
          {"summaries", plans},
          {"series", series_json(result.summary)},
          {"lengths", lengths_sentence(result)},
          {"leads", leads_json(result)},
          {"slowest", slowest_json(result)}};
}

}  // namespace

std::string replay_page(const ReplayResult& result) {
  return html_page(result.study, page_files::replay_js, json_line(page_json(result)));
}

}  // namespace hdpsim
