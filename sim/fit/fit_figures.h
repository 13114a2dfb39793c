#pragma once

#include <string>

#include "sim/fit/step_fitting.h"
#include "sim/results/figure_page.h"
#include "sim/results/figure_table.h"

namespace hdpsim {

/// A fitted parameter with what its table and its search say of it.
struct ReportedParameter {
  FittedParameter fitted;
  std::string unit;
  bool at_limit = false;  ///< It stands at the end of its range.
};
[[nodiscard]] std::vector<ReportedParameter> reported_parameters(const FitResult& result);

/// The figures of `hdpsim calibrate --from-steps`: of a row, of a parameter, of a value that was tried, of errors, of a
/// run that could be measured and of a step that is asked for.
[[nodiscard]] const FigureTable<FitRow>& fit_row_figures();
[[nodiscard]] const FigureTable<ReportedParameter>& fit_parameter_figures();
[[nodiscard]] const FigureTable<TriedValue>& tried_value_figures();
[[nodiscard]] const FigureTable<FitErrors>& fit_error_figures();
[[nodiscard]] const FigureTable<CandidateRun>& candidate_run_figures();
[[nodiscard]] const FigureTable<StepKnowledge>& step_knowledge_figures();
/// Those of them that have a column, or a place in JSON, for the reference page.
[[nodiscard]] FigureSection fit_figures();

}  // namespace hdpsim
