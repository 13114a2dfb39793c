#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/tune/evaluation.h"
#include "sim/tune/refinement.h"
#include "sim/tune/tune.h"
#include "sim/tune/tune_space.h"

namespace hdpsim {

/// What a search knows of a candidate.
struct Contender {
  TunedCandidate figures;
  std::vector<double> times_s{};  ///< Times of the first steps of the order, in the study's fidelity.
  std::size_t twin = 0;           ///< The first candidate with the same mesh and the same plan of the probe step.
  bool is_planned = false;        ///< Its plan has been looked at.
  /// The probe step in closed form; without it the bound is that of its plan.
  std::optional<EvaluatedStep> closed_form{};
  double flops = 0;       ///< Useful FLOPs of these steps.
  double peak_per_s = 0;  ///< FLOPs of one device.

  [[nodiscard]] bool can_run() const { return figures.fate != TunedCandidate::Fate::infeasible; }
  [[nodiscard]] double sum_s(std::size_t steps) const;
};

/// Indices into the space.
using CandidateNumbers = std::vector<std::size_t>;

/// The candidates of a search: its space with what is known of each. The space grows.
class Contenders {
 public:
  /// `study` must outlive them.
  Contenders(const Study& study, std::vector<Candidate> space);

  [[nodiscard]] const std::vector<Candidate>& space() const { return space_; }
  [[nodiscard]] std::size_t size() const { return space_.size(); }
  /// Candidates before refinements: the first of the space.
  [[nodiscard]] std::size_t stated() const { return stated_; }
  [[nodiscard]] const Contender& operator[](std::size_t candidate) const { return contenders_[candidate]; }
  [[nodiscard]] Contender& operator[](std::size_t candidate) { return contenders_[candidate]; }
  [[nodiscard]] const Study& study() const { return study_; }
  /// All steps, the probe first: the one whose sum of squared lengths is the median.
  [[nodiscard]] const std::vector<std::int64_t>& order() const { return order_; }
  [[nodiscard]] std::int64_t probe() const { return order_.front(); }

  void add(std::vector<Candidate> more);
  /// Adds an evaluation to what is known.
  void take(const Evaluation& evaluation);
  /// In closed form a plan is simulated once, whichever policies make it on a mesh: the others have the same bound.
  void share_closed_forms();

  /// The figure to minimize: seconds, or GPU-seconds.
  [[nodiscard]] double score(std::size_t candidate, double seconds) const;
  /// The score of the lower bound of the probe step.
  [[nodiscard]] double bound(std::size_t candidate) const;
  /// The score over the first steps of the order.
  [[nodiscard]] double full(std::size_t candidate, std::size_t steps) const;
  /// Those that can run, as far as is known.
  [[nodiscard]] CandidateNumbers feasible() const;
  [[nodiscard]] std::vector<BoundedCandidate> bounds() const;
  /// InputError with all reasons if none can run.
  void require_any() const;

  /// Orders candidates by a figure; equal ones stay as they are.
  template <class Figure>
  static void sort_by(CandidateNumbers& candidates, const Figure& figure) {
    std::stable_sort(candidates.begin(), candidates.end(),
                     [&](std::size_t a, std::size_t b) { return figure(a) < figure(b); });
  }

 private:
  void enter_all();
  void share_with(Contender& contender, const Contender& twin) const;

  const Study& study_;
  std::vector<Candidate> space_;
  const std::size_t stated_;
  std::vector<std::int64_t> order_;
  std::vector<Contender> contenders_;
  std::map<std::string, std::size_t> twins_;  // the first candidate by mesh and plan
};

/// The candidates that no other one beats in time, memory (in twentieths of a device) and GPUs together; `time_s(i)` is
/// the time of one.
[[nodiscard]] CandidateNumbers front_of(const Contenders& contenders, const std::function<double(std::size_t)>& time_s);
/// Those whose bound no candidate beats whose step has been simulated, in closed form at least: the front may turn out
/// to have any of them.
[[nodiscard]] CandidateNumbers may_reach_front(const Contenders& contenders);

/// States times relative to the winner's, on the steps that both were simulated on, or on the probe step.
void state_times(Contenders& contenders, std::size_t winner);

}  // namespace hdpsim
