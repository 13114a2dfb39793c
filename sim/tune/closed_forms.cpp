#include "sim/tune/closed_forms.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "sim/tune/search_rules.h"

namespace hdpsim {

CandidateNumbers closed_forms_to_come(const Contenders& contenders, std::size_t of_each) {
  struct OfPlan {
    std::vector<double> best{};  ///< By closed form.
    CandidateNumbers waiting{};
  };
  std::map<std::string, OfPlan> plans;
  for (const std::size_t i : contenders.feasible()) {
    OfPlan& plan = plans[contenders.space()[i].plan];
    if (contenders[i].closed_form) {
      plan.best.push_back(contenders.bound(i));
    } else {
      plan.waiting.push_back(i);
    }
  }
  constexpr std::size_t places = search_rules::places_of_plan;
  CandidateNumbers next;
  for (auto& [name, plan] : plans) {
    std::sort(plan.best.begin(), plan.best.end());
    const bool is_open = plan.best.size() < places;
    const double last =
        is_open ? std::numeric_limits<double>::infinity() : (1 + search_rules::near) * plan.best[places - 1];
    std::erase_if(plan.waiting, [&](std::size_t i) { return contenders.bound(i) > last; });
    Contenders::sort_by(plan.waiting, [&](std::size_t i) { return contenders.bound(i); });
    plan.waiting.resize(std::min(of_each, plan.waiting.size()));
    next.insert(next.end(), plan.waiting.begin(), plan.waiting.end());
  }
  return next;
}

}  // namespace hdpsim
