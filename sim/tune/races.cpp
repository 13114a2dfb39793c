#include "sim/tune/races.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "sim/tune/search_rules.h"

namespace hdpsim {

// Those of `candidates` that can still run, best first by the first steps.
CandidateNumbers Races::ranked(CandidateNumbers candidates, std::size_t steps) const {
  std::erase_if(candidates, [&](std::size_t i) { return !contenders_[i].can_run(); });
  Contenders::sort_by(candidates, [&](std::size_t i) { return contenders_.full(i, steps); });
  return candidates;
}

// A candidate whose bound exceeds this cannot be one of the best.
double Races::limit(const Race& race) const {
  if (race.running.size() < race.places) return std::numeric_limits<double>::infinity();
  return (1 + search_rules::near) * contenders_.full(race.running[race.places - 1], 1);
}

// Simulates in the order of bounds.
bool Races::branch_and_bound(Race& race) {
  while (true) {
    const double last = limit(race);
    std::erase_if(race.waiting,
                  [&](std::size_t i) { return !contenders_[i].can_run() || contenders_.bound(i) > last; });
    if (race.waiting.empty()) break;
    Contenders::sort_by(race.waiting, [&](std::size_t i) { return contenders_.bound(i); });
    if (!simulate_next(race)) return false;
  }
  const double last = limit(race);
  std::erase_if(race.running, [&](std::size_t i) { return contenders_.full(i, 1) > last; });
  return true;
}

// Those with the lowest bounds. If one of these is only that of a plan, that of the closed form comes first.
bool Races::simulate_next(Race& race) {
  const auto count = static_cast<std::ptrdiff_t>(std::min(search_rules::at_a_time, race.waiting.size()));
  const auto end = race.waiting.begin() + count;
  const CandidateNumbers next(race.waiting.begin(), end);
  CandidateNumbers coarse = next;
  std::erase_if(coarse, [&](std::size_t i) { return contenders_[i].closed_form.has_value(); });
  if (!coarse.empty()) return steps_.in_closed_form(coarse, race.waiting.size());
  if (!steps_.in_full(next, 1, "branch and bound", race.waiting.size())) return false;
  race.waiting.erase(race.waiting.begin(), end);
  race.running.insert(race.running.end(), next.begin(), next.end());
  race.running = ranked(std::move(race.running), 1);
  return true;
}

bool Races::halve(Race& race) {
  CandidateNumbers& running = race.running;
  const std::size_t all = contenders_.order().size();
  for (std::size_t steps = 1; steps < all;) {
    steps = std::min(2 * steps, all);
    if (!steps_.in_full(running, steps, "successive halving", running.size())) return false;
    running = ranked(std::move(running), steps);
    const std::size_t half = steps == all ? running.size() : (running.size() + 1) / 2;
    running.resize(std::min(running.size(), std::max(race.places, half)));
  }
  return true;
}

std::optional<CandidateNumbers> Races::winners_of(const CandidateNumbers& entered, std::size_t places) {
  while (true) {
    Race race{entered, places};
    std::erase_if(race.waiting, [&](std::size_t i) { return !contenders_[i].can_run(); });
    if (race.waiting.empty()) return race.running;
    if (!branch_and_bound(race) || !halve(race)) return std::nullopt;
    if (!race.running.empty()) return race.running;
  }
}

}  // namespace hdpsim
