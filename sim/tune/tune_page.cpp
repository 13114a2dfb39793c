#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/base/quantity_text.h"
#include "sim/document/json.h"
#include "sim/page/page.h"
#include "sim/page/page_files.h"
#include "sim/plan/policy.h"
#include "sim/report/page/page_data.h"
#include "sim/tune/tune_report.h"

namespace hdpsim {
namespace {

using Fate = TunedCandidate::Fate;

// Candidates of the page: the best, those of each plan, and all of the front. candidates.csv has the others.
constexpr std::size_t most_shown = 2000;

Json candidates_json(const TuneResult& result, const std::optional<Price>& price) {
  Json candidates = Json::array();
  for (const RankedCandidate& each : ranked_candidates(result, price)) {
    const bool is_shown = each.rank <= most_shown || each.candidate->on_front || each.candidate->best_of_plan;
    if (!is_shown || each.candidate->fate == Fate::infeasible) continue;
    candidates.push_back(candidate_figures().json(each));
    candidates.back()["rank"] = each.rank;
  }
  return candidates;
}

// [how many, reason, an example], the most frequent first.
Json reasons_json(const TuneResult& result) {
  std::map<std::string, std::pair<std::int64_t, std::string>> reasons;
  for (const TunedCandidate& candidate : result.candidates) {
    if (candidate.fate == Fate::infeasible)
      ++reasons.try_emplace(candidate.reason, 0, candidate.text).first->second.first;
  }
  std::vector<std::pair<std::string, std::pair<std::int64_t, std::string>>> order(reasons.begin(), reasons.end());
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.second.first > b.second.first; });
  Json json = Json::array();
  for (const auto& [reason, uses] : order) json.push_back({uses.first, reason, uses.second});
  return json;
}

// The best candidate, and the best of each other plan.
std::string lead_of(const TuneResult& result) {
  const TunedCandidate& best = result.candidates.front();
  std::string text = fmt::format("The best of {} candidates takes {} a step: {}.", result.feasible,
                                 seconds_text(best.time_s), best.text);
  for (const TunedCandidate& other : result.candidates) {
    if (!other.best_of_plan || other.plan == best.plan) continue;
    text += fmt::format(" The best with {} takes {}, {:.2f} times as long: {}.", other.plan, seconds_text(other.time_s),
                        other.ratio, other.text);
  }
  return text;
}

std::vector<std::string> plan_names(const TuneResult& result) {
  std::vector<std::string> plans;
  for (const std::string& policy : policy_names()) {
    const auto is_of_it = [&](const TunedCandidate& candidate) { return candidate.plan == policy; };
    if (std::any_of(result.candidates.begin(), result.candidates.end(), is_of_it)) plans.push_back(policy);
  }
  return plans;
}

}  // namespace

std::string tune_page(const TuneResult& result, const std::optional<Price>& price) {
  const std::vector<std::string> plans = plan_names(result);
  Json notes = {tune_effort(result), "Costs are those of " + result.profile + "."};
  if (const std::string risk = tune_risk(result); !risk.empty()) notes.insert(notes.begin(), risk);
  const Json data = {{"plans", plans},
                     {"colors", plan_colors(plans)},
                     {"definitions", definitions(plans)},
                     {"setting", result.setting},
                     {"steps", result.steps},
                     {"device_memory", result.device_memory_gb},
                     {"currency", price ? Json(price->currency) : Json()},
                     {"answer", {{"lead", lead_of(result)}, {"notes", notes}}},
                     {"all", result.candidates.size()},
                     {"feasible", result.feasible},
                     {"candidates", candidates_json(result, price)},
                     {"reasons", reasons_json(result)}};
  return html_page(result.study, page_files::tuning_js, json_line(data));
}

}  // namespace hdpsim
