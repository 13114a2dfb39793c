#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/document/journal.h"
#include "sim/tune/contenders.h"
#include "sim/tune/evaluation.h"
#include "sim/tune/forecast.h"
#include "sim/tune/tune.h"

namespace hdpsim {

/// Computes steps of candidates for a search, hands them to its contenders, and reports progress. What a journal has is
/// not computed again. All functions return false if the search was stopped.
class CandidateSteps {
 public:
  /// All must outlive it. `evaluator` has the space of the contenders.
  CandidateSteps(Contenders& contenders, Evaluator& evaluator, const Forecast& forecast, const TuneRun& run)
      : contenders_(contenders), evaluator_(evaluator), forecast_(forecast), run_(run) {}
  void keep_in(Journal journal) { journal_ = std::move(journal); }

  /// Measures what steps of every kind take by a few candidates from all over the space, so that the time left is
  /// known from the begin (where there is a clock). Nothing else is taken from them: a large search computes a few
  /// steps more.
  [[nodiscard]] bool measure();
  /// The plan of the probe step of all candidates from this one on.
  [[nodiscard]] bool plan_from(std::size_t first);
  /// The probe step in closed form, once for those that are alike. `left`: for the report, as below.
  [[nodiscard]] bool in_closed_form(const CandidateNumbers& candidates, std::size_t left);
  /// The first steps of the order in full, as far as they have not been simulated.
  [[nodiscard]] bool in_full(const CandidateNumbers& candidates, std::size_t steps, const std::string& stage,
                             std::size_t left);
  /// Steps that were computed for the search, by kind.
  [[nodiscard]] const StepCounts& done() const { return done_; }

 private:
  [[nodiscard]] bool probe(const CandidateNumbers& candidates, Fidelity fidelity, std::size_t left);
  template <class Take>
  [[nodiscard]] bool compute(std::vector<Evaluation> evaluations, const Take& take);
  [[nodiscard]] bool evaluate(std::vector<Evaluation> evaluations, const std::string& stage, std::size_t left);
  [[nodiscard]] double now_s() const { return run_.clock ? run_.clock() : 0; }
  void clock(const Evaluation& evaluation, bool is_new);
  [[nodiscard]] TuneProgress progress(const std::string& stage, std::size_t left, const StepCounts& to_come) const;

  Contenders& contenders_;
  Evaluator& evaluator_;
  const Forecast& forecast_;
  const TuneRun& run_;
  Journal journal_;
  StepCounts done_{};
  std::array<MeasuredSteps, 4> measured_{};  // by kind
  double last_s_ = 0;                        // the end of the last step
};

}  // namespace hdpsim
