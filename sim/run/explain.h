#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/analysis/explanation.h"
#include "sim/analysis/metrics.h"
#include "sim/run/advice.h"
#include "sim/study/study.h"

namespace hdpsim {

/// Why a step of a run takes as long as it does. The step is simulated once as it is, and once for each possible
/// improvement: kernels, links between and within nodes, copies to the host twice as fast, slow devices and degraded
/// links at full speed. The plan stays the same. The case that no rank waits for others is a bound: the mean time that
/// ranks are busy.
[[nodiscard]] Explanation explain(const StudyPoint& point, std::size_t plan, std::int64_t step);

/// Which runs of a study are explained, and by which of their steps.
struct ExplainChoice {
  std::int64_t point = 0;
  std::string plan = {};   ///< Empty: all.
  std::int64_t step = -1;  ///< Negative: the typical step of the first of these plans that was not refused.
};

/// The plans of a choice, in the order of the study. InputError if the study lacks the point, the plan or the step.
[[nodiscard]] std::vector<std::size_t> chosen_plans(const Study& study, const ExplainChoice& choice);
/// The step by which all of them are explained. InputError also if all their runs were refused.
[[nodiscard]] std::int64_t chosen_step(const Study& study, const std::vector<Run>& runs, const ExplainChoice& choice);
/// Their explanations, with the names of the plans and with advice. `runs` are those of the study. InputError as for
/// chosen_step(). Empty if it was stopped.
[[nodiscard]] std::vector<Explanation> explain(const Study& study, const std::vector<Run>& runs,
                                               const ExplainChoice& choice, const AdviceOptions& options);
/// The explanation of the run with this index into `runs`, with the name of its plan. Of a run that was refused only
/// that is told.
[[nodiscard]] Explanation explain_run(const Study& study, const std::vector<Run>& runs, std::size_t run,
                                      std::int64_t step);

/// The step that stands for a run: the one with the time nearest to the median; the first of several.
[[nodiscard]] std::int64_t typical_step(const Run& run);

}  // namespace hdpsim
