#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/validate/validation_set.h"

namespace hdpsim {

/// Runs that could be measured next, and what they are to narrow.
struct NextRequest {
  ValidationSet candidates;  ///< Read with FigureUse::to_measure.
  std::string path;          ///< Of the candidates, for messages.
  std::string study;         ///< The file of a study whose step times are asked for; empty: all parameters are.
};

/// What one run, measured alone, would tell.
struct CandidateRun {
  std::string name;                   ///< The row of the candidates.
  std::string quantity;               ///< What would be measured of it, with the plan if the rows have several.
  double width = 0;                   ///< NextRuns::width after it.
  double share = 1;                   ///< That of the width now.
  std::string parameter;              ///< The parameter whose deviation it makes the smallest share of what it is now.
  double parameter_share = 1;         ///< That share.
  std::optional<std::int64_t> place;  ///< 1: to be measured first; 2: then.
};

/// What is known of the mean step time of a run of the study. Deviations are standard deviations of its logarithm that
/// come from the parameters alone; intervals of 90 % reach `reach` of them to either side.
struct StepKnowledge {
  std::string run;
  double step_time_s = 0;
  double reach = 0;
  double now = 0;
  double after_first = 0;
  double after_both = 0;
  [[nodiscard]] double low(double deviation) const;
  [[nodiscard]] double high(double deviation) const;
};

/// Which runs would narrow most what is asked.
struct NextRuns {
  std::string candidates;  ///< Their file.
  std::string study;       ///< Empty: none was given.
  /// With a study: half the width of the interval of 90 % of the logarithm of its step time, the mean over its runs.
  /// Without: the geometric mean over the parameters of posterior over prior deviation.
  double width = 0;
  std::vector<double> width_after;    ///< After the first run to be measured, and after both.
  std::vector<CandidateRun> runs;     ///< By their width.
  std::vector<StepKnowledge> steps;   ///< Of the runs of the study.
  std::vector<std::string> left_out;  ///< Why rows of the candidates have no part in it, with their number.

  /// The candidate that is to be measured at this place, 1 or 2; null if there is none.
  [[nodiscard]] const CandidateRun* at_place(std::int64_t place) const;
};

}  // namespace hdpsim
