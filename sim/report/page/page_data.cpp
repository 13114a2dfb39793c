#include "sim/report/page/page_data.h"

#include <algorithm>
#include <string_view>

#include "sim/analysis/glossary.h"
#include "sim/document/json.h"
#include "sim/plan/policy.h"

namespace hdpsim {
namespace {

// Without the marks of code, which a page does not show.
std::string plain(std::string_view text) {
  std::string plain(text);
  plain.erase(std::remove(plain.begin(), plain.end(), '`'), plain.end());
  return plain;
}

std::string_view policy_of(std::string_view plan) {
  return plan.substr(0, plan.find(' '));
}

}  // namespace

Json plan_colors(const std::vector<std::string>& plans) {
  const std::vector<std::string>& policies = policy_names();
  Json colors = Json::object();
  std::vector<bool> taken(policies.size() + plans.size() + 1);
  for (const std::string& plan : plans) {
    const auto policy = std::find(policies.begin(), policies.end(), policy_of(plan));
    auto color = static_cast<std::size_t>(policy - policies.begin());
    if (taken[color]) color = policies.size();
    while (taken[color]) ++color;
    taken[color] = true;
    colors[plan] = color;
  }
  return colors;
}

Json definitions(const std::vector<std::string>& plans) {
  Json found = {{"plans", Json::object()}, {"activities", Json::object()}, {"evidence", Json::object()}};
  for (const std::string& plan : plans) {
    const std::string_view meaning = policy_meaning(policy_of(plan));
    if (!meaning.empty()) found["plans"][plan] = plain(meaning);
  }
  for (const Activity activity : all_activities) {
    found["activities"][std::string(activity_name(activity))] = plain(activity_meaning(activity));
  }
  for (std::size_t i = 0; i < evidence_kinds; ++i) {
    const auto evidence = static_cast<Evidence>(i);
    found["evidence"][std::string(evidence_name(evidence))] = plain(evidence_meaning(evidence));
  }
  return found;
}

}  // namespace hdpsim
