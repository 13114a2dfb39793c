#pragma once

#include <string>
#include <vector>

#include "sim/analysis/metrics.h"
#include "sim/run/advice.h"

namespace hdpsim {

/// What a reader of a report is told first. Whole sentences.
struct Answer {
  /// Which plan is the fastest of those that fit, by how much, and what its time shrinks by; over a sweep, at how many
  /// points it is that.
  std::string lead;
  /// What does not fit and what the baseline is, how sure the lead is, and what the costs rest on.
  std::vector<std::string> notes;
};

/// The answer of evaluated runs: all plans of the first point, then of the second, and so on.
[[nodiscard]] Answer answer_of(const std::vector<Run>& runs, const RunAdvice& advice = {});

}  // namespace hdpsim
