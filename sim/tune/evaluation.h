#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "sim/analysis/memory.h"
#include "sim/study/catalog.h"
#include "sim/study/study.h"
#include "sim/tune/tune_space.h"

namespace hdpsim {

/// What a search needs to know of a simulated step.
struct EvaluatedStep {
  Duration time;
  Bytes device;            ///< Of the fullest one.
  double model_flops = 0;  ///< Useful work of the batch.
};

/// Steps of one candidate that are to be simulated, or have been.
struct Evaluation {
  std::size_t candidate = 0;
  bool closed_form = false;
  std::vector<std::int64_t> steps;
  std::vector<EvaluatedStep> results{};  ///< Of these steps.
  std::string problem{};                 ///< Why it cannot run; then there are no results.
  std::int64_t gpus = 0;
  std::int64_t capacity = 0;
  FlopRate peak{};  ///< Of one device.
};

/// Simulates candidates; for several threads at once.
class Evaluator {
 public:
  Evaluator(const std::vector<Candidate>& candidates, Catalog& catalog) : candidates_(candidates), catalog_(catalog) {}

  /// The candidate as a study. InputError with all that is wrong with it.
  [[nodiscard]] Study study_of(std::size_t candidate);
  /// What its steps depend on, files that it names included; why it cannot run, if it cannot.
  [[nodiscard]] std::string identity_of(std::size_t candidate);
  [[nodiscard]] Evaluation evaluate(Evaluation evaluation);

 private:
  const std::vector<Candidate>& candidates_;
  Catalog& catalog_;
  std::mutex reading_;  // guards catalog_
};

/// Why the memory of a step is too small, or nothing if it is not.
[[nodiscard]] std::string memory_problem(const MemoryUse& memory, const PointSpec& spec);

}  // namespace hdpsim
