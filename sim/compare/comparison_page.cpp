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

Json plan_data(const Comparison& plan) {
  std::vector<ComparedWorker> shown;
  for (const std::size_t worker : worst_ranks(plan, ranks_of_page)) shown.push_back({&plan, worker});
  Json data = plan_json(plan, shown);
  data["all_ranks"] = plan.ranks.size();
  return data;
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
