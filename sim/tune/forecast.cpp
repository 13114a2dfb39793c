#include "sim/tune/forecast.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "sim/tune/closed_forms.h"
#include "sim/tune/search_rules.h"

namespace hdpsim {
namespace {

constexpr double unknown_share = 0.5;

// Of `all` cases `found` were so; with none of them nothing is known.
double share_of(double found, double all) {
  return (found + unknown_share) / (all + 1);
}

std::map<std::string, CandidateNumbers> by_plan(const Contenders& contenders, const CandidateNumbers& candidates) {
  std::map<std::string, CandidateNumbers> plans;
  for (const std::size_t i : candidates) plans[contenders.space()[i].plan].push_back(i);
  return plans;
}

}  // namespace

std::size_t kind_of(const Evaluation& evaluation) {
  return static_cast<std::size_t>(evaluation.fidelity) + (evaluation.closed_form ? 1 : 0);
}

StepCounts Forecast::left() const {
  double planned = 0;
  for (std::size_t i = 0; i < contenders_.size(); ++i) planned += contenders_[i].is_planned ? 1 : 0;
  const double refinements = expected_refinements();
  const double plans = static_cast<double>(contenders_.size()) - planned + refinements;
  // Those without a plan are taken to be as good as the others.
  const double of_planned = static_cast<double>(contenders_.size()) / std::max(1.0, planned);
  const FullSteps full = expected_full_steps();
  return {std::llround(plans), std::llround(expected_closed_forms(planned, refinements)),
          std::llround(of_planned * full.others), std::llround(of_planned * full.first)};
}

double Forecast::expected_refinements() const {
  const double left = refinement_.most_left();
  const auto asked = static_cast<double>(contenders_.size() - contenders_.stated());
  return left * std::min(1.0, share_of(asked, most_refined_ - left));
}

// A plan that several policies make is simulated once.
double Forecast::expected_closed_forms(double planned, double refinements) const {
  std::set<std::size_t> waiting;
  double known = 0;
  double known_refinements = 0;
  double refined = 0;
  for (const std::size_t i : closed_forms_to_come(contenders_)) waiting.insert(contenders_[i].twin);
  for (std::size_t i = 0; i < contenders_.size(); ++i) {
    if (!contenders_[i].is_planned) continue;
    const bool has_own = contenders_[i].closed_form.has_value() && contenders_[i].twin == i;
    known += has_own ? 1 : 0;
    if (i < contenders_.stated()) continue;
    refined += 1;
    known_refinements += has_own ? 1 : 0;
  }
  // Before the first closed form, all wait for theirs.
  const double waits = static_cast<double>(waiting.size()) * (known > 0 ? 1 : unknown_share);
  const double near = share_of(known + waits, planned);
  const auto unplanned = static_cast<double>(contenders_.size()) - planned;
  return waits + near * unplanned + share_of(known_refinements, refined) * refinements;
}

void Forecast::add_first(std::size_t candidate, FullSteps& steps) const {
  if (!contenders_[candidate].times_s.empty() || !steps.begun.insert(candidate).second) return;
  (contenders_[candidate].closed_form ? steps.first : steps.others) += 1;
}

// The full simulations of a race on what is known now.
void Forecast::add_race(CandidateNumbers racing, std::size_t places, FullSteps& steps) const {
  Contenders::sort_by(racing, [&](std::size_t i) { return best_known(i); });
  if (racing.size() > places) {
    const double last = (1 + search_rules::near) * best_known(racing[places - 1]);
    std::erase_if(racing, [&](std::size_t i) { return best_known(i) > last; });
  }
  for (const std::size_t i : racing) add_first(i, steps);
  const std::size_t all = contenders_.order().size();
  for (std::size_t before = 1, to = 2; before < all; before = to, to *= 2) {
    to = std::min(to, all);
    for (const std::size_t i : racing) {
      const std::size_t done = std::max(contenders_[i].times_s.size(), before);
      if (done < to) steps.others += static_cast<double>(to - done);
    }
    racing.resize(std::min(racing.size(), std::max(places, (racing.size() + 1) / 2)));
  }
}

// The score of the probe step, or of its bound.
double Forecast::best_known(std::size_t candidate) const {
  const bool is_simulated = !contenders_[candidate].times_s.empty();
  return is_simulated ? contenders_.full(candidate, 1) : contenders_.bound(candidate);
}

Forecast::FullSteps Forecast::expected_full_steps() const {
  const CandidateNumbers feasible = contenders_.feasible();
  FullSteps steps;
  const auto places = static_cast<std::size_t>(contenders_.study().tune.keep);
  if (!is_first_race_over_) add_race(feasible, places, steps);
  for (const auto& [plan, candidates] : by_plan(contenders_, feasible)) {
    add_race(candidates, search_rules::places_of_plan, steps);
  }
  for (const std::size_t i : may_reach_front(contenders_)) add_first(i, steps);
  return steps;
}

}  // namespace hdpsim
