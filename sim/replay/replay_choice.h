#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/study/study.h"

namespace hdpsim {

/// What a replay takes of a study.
struct ReplayChoice {
  std::string trace;               ///< File of lengths instead of the study's; empty: the study's.
  std::string column;              ///< Of the trace; empty: as it is found there.
  std::vector<std::string> plans;  ///< Their names; empty: all plans.
  std::int64_t steps = 0;          ///< 0: until the trace has been used once; without a trace as the study says.
  std::int64_t point = -1;         ///< -1: the only one.
};

/// The overrides with which the study is read: those that put the trace into it, then the user's. InputError for a
/// column without a trace.
[[nodiscard]] std::vector<std::string> overrides_of(const ReplayChoice& choice,
                                                    const std::vector<std::string>& overrides);

/// Leaves the chosen plans in the study and returns its chosen point, with the chosen number of steps. InputError if
/// there are no such plans, or no such point, or several to choose from.
const StudyPoint& choose(Study& study, const ReplayChoice& choice);

}  // namespace hdpsim
