#include <fmt/format.h>

#include "sim/base/quantity_text.h"
#include "sim/document/json.h"
#include "sim/page/page.h"
#include "sim/page/page_files.h"
#include "sim/replay/replay_report.h"
#include "sim/replay/replay_text.h"
#include "sim/report/page/page_data.h"

namespace hdpsim {
namespace {

Json plan_data(const ReplayResult& result, std::size_t index) {
  Json data = plan_json(result, index);
  data["unfit"] = unfit_text(result, index);
  data["risk"] = risk_text(result, index);
  return data;
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
          {"definitions", definitions(result.plans)},
          {"setting", result.setting},
          {"profile", result.profile},
          {"steps", result.summary.rules.steps},
          {"baseline", baseline_of(result)},
          {"answer", {{"lead", lead_of(result)}, {"notes", notes}}},
          {"summaries", plans},
          {"series", series_json(result.summary)},
          {"lengths", lengths_sentence(result)},
          {"leads", leads_json(result)}};
}

}  // namespace

std::string replay_page(const ReplayResult& result) {
  return html_page(result.study, page_files::replay_js, json_line(page_json(result)));
}

}  // namespace hdpsim
