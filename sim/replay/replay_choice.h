#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/analysis/step_result.h"
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

/// A plan that a replay goes without, because it is refused in one of its steps.
struct RefusedPlan {
  std::string plan;
  Position place;   ///< Its entry in the study.
  Refusal refusal;  ///< The first step that it refuses, and why.
};

/// "verl is refused: study.yaml:13:5: verl makes a micro-batch of 9,000 tokens, ... (step 3)", and what the policy
/// suggests.
[[nodiscard]] std::string refusal_text(const RefusedPlan& refused);

/// Plans all steps of a point of the study (PointSpec::steps) with every plan that may be refused, and leaves those out
/// of the study that are, in the order of the study; a baseline among them leaves no other. A replay states
/// speed-ups and the fastest plan of every step, so that each of its plans runs every step. Asks `stop` before every
/// plan; empty if it was stopped. InputError with all refusals if no plan would be left.
[[nodiscard]] std::optional<std::vector<RefusedPlan>> leave_out_refused(Study& study, const StudyPoint& point,
                                                                        std::size_t jobs,
                                                                        const std::function<bool()>& stop);

}  // namespace hdpsim
