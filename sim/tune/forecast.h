#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>

#include "sim/tune/contenders.h"
#include "sim/tune/refinement.h"

namespace hdpsim {

/// Numbers of steps by kind, as in TuneWorks.
using StepCounts = std::array<std::int64_t, 4>;
/// The place of the steps of an evaluation in StepCounts.
[[nodiscard]] std::size_t kind_of(const Evaluation& evaluation);

/// How many steps a search still computes, as far as its own rules and what it has found so far say: candidates without
/// a plan; those whose bound is near the best of their policy and that have no closed form; what the refinement may
/// still ask for, at the share that it has asked for so far; and the races as they would be with the bounds of now.
/// Before anything is known of a share, it is a half.
class Forecast {
 public:
  Forecast(const Contenders& contenders, const Refinement& refinement)
      : contenders_(contenders), refinement_(refinement), most_refined_(refinement.most_left()) {}

  /// O(n log n) for n candidates.
  [[nodiscard]] StepCounts left() const;
  /// The race for the first places is over; those for the places of every policy are left.
  void end_first_race() { is_first_race_over_ = true; }

 private:
  /// Full simulations to come.
  struct FullSteps {
    double first = 0;               ///< Of candidates with a closed form, their first steps;
    double others = 0;              ///< all other steps.
    std::set<std::size_t> begun{};  ///< Candidates that have these first steps, too.
  };

  [[nodiscard]] double expected_refinements() const;
  [[nodiscard]] double expected_closed_forms(double planned, double refinements) const;
  [[nodiscard]] double best_known(std::size_t candidate) const;
  void add_race(CandidateNumbers racing, std::size_t places, FullSteps& steps) const;
  void add_first(std::size_t candidate, FullSteps& steps) const;
  [[nodiscard]] FullSteps expected_full_steps() const;

  const Contenders& contenders_;
  const Refinement& refinement_;
  double most_refined_;
  bool is_first_race_over_ = false;
};

}  // namespace hdpsim
