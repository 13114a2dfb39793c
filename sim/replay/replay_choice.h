#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/study/study.h"

namespace hdpsim {

/// The part of a study that a replay uses.
struct ReplayChoice {
  std::string trace;               ///< File of lengths instead of the study's; empty: the study's.
  std::string column;              ///< Column of the trace; empty: detected.
  std::vector<std::string> plans;  ///< Names of plans; empty: all plans.
  std::int64_t steps = 0;          ///< 0: until the trace has been used once; without a trace, the study's number.
  std::int64_t point = -1;         ///< Index of the point; -1: the only one.
};

/// The overrides with which the study is read: those that put the trace into it, then the user's (with_lengths).
[[nodiscard]] std::vector<std::string> overrides_of(const ReplayChoice& choice,
                                                    const std::vector<std::string>& overrides);

/// Keeps only the chosen plans in the study and returns its chosen point, with the chosen number of steps. InputError
/// if there is no such plan or point, or if several points are left to choose from.
const StudyPoint& choose(Study& study, const ReplayChoice& choice);

/// Keeps of the study only the plans of these places, in ascending order. Nothing is compared with a baseline that is
/// none of them.
void keep_plans(Study& study, const std::vector<std::size_t>& kept);

}  // namespace hdpsim
