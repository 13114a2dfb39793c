#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/analysis/memory_verdict.h"
#include "sim/document/record.h"
#include "sim/study/catalog.h"
#include "sim/study/study.h"
#include "sim/tune/tune_space.h"

namespace hdpsim {

/// How much is computed of a step, from the coarsest on. The time of each is a lower bound of the next one's.
enum class Fidelity : std::uint8_t {
  plan,         ///< Its plan: the memory, and the work of the busiest rank.
  closed_form,  ///< The step where no traffic shares a link.
  full,         ///< The step in the study's grain.
};
/// "plan", "closed form", "simulation"
[[nodiscard]] std::string_view fidelity_name(Fidelity fidelity);

/// The figures of a step that a search needs.
struct EvaluatedStep {
  Duration time;
  Bytes device;             ///< Memory of the fullest device.
  double model_flops = 0;   ///< Useful FLOPs of the batch.
  Bytes device_at_most;     ///< That device with the largest gaps of the allocator (with_largest_gaps()).
  bool is_at_risk = false;  ///< MemoryFit::at_risk.
  Duration sharing{};       ///< How long a mean rank waits for keys and values, ...
  Duration bubble{};        ///< ... and for other stages of its pipeline. Neither is known of a plan alone, ...
  std::uint64_t plan = 0;   ///< ... of which alone this hash is kept (StepPreview::plan).
};

/// Steps of one candidate that are to be computed, or have been.
struct Evaluation {
  std::size_t candidate = 0;
  Fidelity fidelity = Fidelity::full;
  std::vector<std::int64_t> steps;
  /// The first of the steps in closed form, if that is known.
  std::optional<EvaluatedStep> closed_form{};
  std::vector<EvaluatedStep> results{};  ///< One per step.
  std::string problem{};                 ///< Why the candidate cannot run; there are then no results.
  std::int64_t gpus = 0;
  std::int64_t capacity = 0;
  double peak_per_s = 0;  ///< Peak FLOPs a second of one device.
};

/// The key of an evaluation in the journal of a search: what was asked for. What a search simulates next depends only
/// on its results so far, which it takes in one order: with kept ones it continues to the same end.
[[nodiscard]] std::string key_of(const Evaluation& evaluation);

// What the journal keeps.
template <SameAs<EvaluatedStep> Self, class Visit>
void each_member(Self& step, const Visit& visit) {
  visit("time_ps", step.time);
  visit("device", step.device);
  visit("model_flops", step.model_flops);
  visit("device_at_most", step.device_at_most);
  visit("is_at_risk", step.is_at_risk);
  visit("sharing_ps", step.sharing);
  visit("bubble_ps", step.bubble);
  visit("plan", step.plan);
}
template <SameAs<Evaluation> Self, class Visit>
void each_member(Self& evaluation, const Visit& visit) {
  visit("candidate", evaluation.candidate);
  visit("fidelity", evaluation.fidelity);
  visit("steps", evaluation.steps);
  visit("results", evaluation.results);
  visit("problem", evaluation.problem);
  visit("gpus", evaluation.gpus);
  visit("capacity", evaluation.capacity);
  visit("peak_per_s", evaluation.peak_per_s);
}

/// Simulates candidates; several threads may use it at once.
class Evaluator {
 public:
  Evaluator(const std::vector<Candidate>& candidates, Catalog& catalog) : candidates_(candidates), catalog_(catalog) {}

  /// The candidate as a study. InputError with all its problems.
  [[nodiscard]] Study study_of(std::size_t candidate);
  /// Text of everything that the candidate's steps depend on, including the files that it names; if it cannot run, the
  /// reason.
  [[nodiscard]] std::string identity_of(std::size_t candidate);
  [[nodiscard]] Evaluation evaluate(Evaluation evaluation);

 private:
  const std::vector<Candidate>& candidates_;
  Catalog& catalog_;
  std::mutex reading_;  // guards catalog_
};

/// Why the memory of a step is too small; empty if it suffices.
[[nodiscard]] std::string memory_problem(const MemoryUse& memory, const MemoryLimits& limits);

}  // namespace hdpsim
