#pragma once

#include <cstddef>
#include <optional>

#include "sim/tune/candidate_steps.h"
#include "sim/tune/contenders.h"

namespace hdpsim {

/// Races of candidates for the first places: branch and bound on the probe step, then successive halving on the number
/// of steps (tune.h has the sources).
class Races {
 public:
  /// Both must outlive it.
  Races(Contenders& contenders, CandidateSteps& steps) : contenders_(contenders), steps_(steps) {}

  /// The best of the candidates that enter, best first, all of them simulated over all steps. Repeated if the best ones
  /// turn out not to fit; empty if none does. Nothing if it was stopped.
  [[nodiscard]] std::optional<CandidateNumbers> winners_of(const CandidateNumbers& entered, std::size_t places);

 private:
  /// Candidates that compete for the first places.
  struct Race {
    CandidateNumbers waiting;
    std::size_t places = 1;
    CandidateNumbers running{};  ///< Those that may still win, best first.
  };

  [[nodiscard]] CandidateNumbers ranked(CandidateNumbers candidates, std::size_t steps) const;
  [[nodiscard]] double limit(const Race& race) const;
  [[nodiscard]] bool branch_and_bound(Race& race);
  [[nodiscard]] bool simulate_next(Race& race);
  [[nodiscard]] bool halve(Race& race);

  Contenders& contenders_;
  CandidateSteps& steps_;
};

}  // namespace hdpsim
