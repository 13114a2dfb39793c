#include "sim/compare/comparison_output.h"

#include <fmt/format.h>

#include <cmath>

#include "sim/base/quantity_text.h"
#include "sim/document/json.h"
#include "sim/page/page.h"
#include "sim/page/page_files.h"
#include "sim/report/page/page_data.h"

namespace hdpsim {
namespace {

constexpr std::size_t ranks_of_page = 64;

Json pair_row(const Pair& pair) {
  return {rounded(pair.predicted), rounded(pair.measured)};
}

Json families_json(const Comparison& plan) {
  Json rows = Json::array();
  for (const FamilyComparison& family : plan.families) {
    rows.push_back({{"name", family.family}, {"count", family.instructions}, {"seconds", pair_row(family.seconds)}});
  }
  return rows;
}

Json activities_json(const Comparison& plan) {
  Json rows = Json::array();
  for (const Activity activity : all_activities) {
    const Pair& pair = plan.activities_s[index_of(activity)];
    if (pair.predicted == 0 && pair.measured == 0) continue;
    rows.push_back({{"name", activity_name(activity)}, {"seconds", pair_row(pair)}});
  }
  if (plan.on_core_s) rows.push_back({{"name", "kernels, while on a core"}, {"seconds", pair_row(*plan.on_core_s)}});
  return rows;
}

Json ranks_json(const Comparison& plan) {
  Json rows = Json::array();
  for (const std::size_t i : worst_ranks(plan, ranks_of_page)) {
    const auto& [busy, exchange, hidden] = plan.ranks[i];
    const Pair exposed = {exchange.predicted - hidden.predicted, exchange.measured - hidden.measured};
    rows.push_back(
        {{"name", "rank " + worker_name(plan, i)}, {"busy", pair_row(busy)}, {"exposed", pair_row(exposed)}});
  }
  return rows;
}

Json plan_data(const Comparison& plan) {
  return {{"plan", plan.plan},
          {"steps", plan.steps.size()},
          {"runs", plan.runs},
          {"step_time", pair_row(plan.step_time_s)},
          {"noise", plan.noise_floor_s ? Json(rounded(*plan.noise_floor_s)) : Json()},
          {"core_share", plan.core_share},
          {"at_pace", plan.at_pace_s ? pair_row(*plan.at_pace_s) : Json()},
          {"busy_machine", busy_machine_text(plan)},
          {"families", families_json(plan)},
          {"activities", activities_json(plan)},
          {"ranks", ranks_json(plan)},
          {"all_ranks", plan.ranks.size()}};
}

// "The predicted step time is off by at most 3.1 %: static 1.00 s against 975 ms measured (+2.8 %), ..."
std::string lead_of(const std::vector<Comparison>& plans) {
  double worst = 0;
  std::string each;
  for (const Comparison& plan : plans) {
    const double error = plan.step_time_s.error().value_or(0);
    worst = std::max(worst, std::abs(error));
    each += fmt::format("{}{} {} against {} measured ({:+.1f} %)", each.empty() ? "" : ", ", plan.plan,
                        seconds_text(plan.step_time_s.predicted), seconds_text(plan.step_time_s.measured), 100 * error);
  }
  return fmt::format("The predicted step time is off by at most {:.1f} %: {}.", 100 * worst, each);
}

std::vector<std::string> notes_of(const std::vector<Comparison>& plans) {
  std::vector<std::string> notes;
  for (const Comparison& plan : plans) {
    const std::string busy = busy_machine_text(plan);
    if (!busy.empty()) notes.push_back(fmt::format("{}: {}.", plan.plan, busy));
  }
  if (const std::optional<double> tau = ranking_agreement(plans)) {
    notes.push_back(fmt::format("Ranking of the plans, predicted against measured: Kendall's tau is {:.2f}.", *tau));
  }
  return notes;
}

}  // namespace

std::string comparison_page(const std::string& title, const std::vector<Comparison>& plans) {
  std::vector<std::string> names;
  Json comparisons = Json::array();
  for (const Comparison& plan : plans) {
    names.push_back(plan.plan);
    comparisons.push_back(plan_data(plan));
  }
  const Json data = {{"plans", names},
                     {"colors", plan_colors(names)},
                     {"definitions", definitions(names)},
                     {"answer", {{"lead", lead_of(plans)}, {"notes", notes_of(plans)}}},
                     {"comparisons", comparisons}};
  return html_page(title, page_files::comparison_js, json_line(data));
}

}  // namespace hdpsim
