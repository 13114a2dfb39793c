#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string_view>
#include <vector>

#include "sim/analysis/explanation.h"
#include "sim/analysis/metrics.h"
#include "sim/study/catalog.h"
#include "sim/study/study.h"

namespace hdpsim {

/// Advice by index of the run that it is for. Runs that nothing helps have none.
using RunAdvice = std::map<std::size_t, std::vector<Advice>>;

/// How far the search for advice on a run is.
struct AdviceProgress {
  std::string_view plan;
  std::int64_t tried = 0;  ///< Changes.
  std::int64_t most = 0;   ///< If every round tries as many as the first.
};

/// Who simulates what is tried.
struct AdviceOptions {
  const Catalog& catalog;                             ///< Each thread reads with a copy.
  std::size_t jobs = 1;                               ///< Threads; advice does not depend on their number.
  std::function<bool()> stop = [] { return false; };  ///< Asked before every trial, from any thread.
  std::size_t most_together = 4;                      ///< Changes that stand together; each more costs a round of ...
  std::size_t beam = 1;                               ///< ... trials on top of so many of the best.
  std::function<void(const AdviceProgress&)> report = [](const AdviceProgress&) {};  ///< One call at a time.
};

/// What a user could change so that the plan of this run takes less time for a token, or can run at all, the best
/// first: changes of possible_changes(), the best of each subject, and those of them that are better still together.
/// Every one was read as the study of the run, planned anew and simulated for this step, or for the one that is refused
/// or does not fit, in the fluid grain. Policies with a quicker search (quicker_search()) find the best changes with
/// that. What is refused or does not fit is no advice, nor is what gains less than half a per cent. A round simulates
/// 50 steps at most. Empty if it was stopped.
[[nodiscard]] std::vector<Advice> advice_for(const Study& study, const std::vector<Run>& runs, std::size_t run,
                                             std::int64_t step, const AdviceOptions& options);

/// Whether a step of a point fits: its devices, its hosts and the capacity of its ranks.
[[nodiscard]] bool fits_in(const StepResult& step, const PointSpec& spec);

/// Whether advice for all of these runs takes a few seconds: by the workers that they simulate.
[[nodiscard]] bool is_cheap_to_advise(const Study& study, const std::vector<std::size_t>& chosen);

}  // namespace hdpsim
