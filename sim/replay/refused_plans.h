#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/analysis/step_result.h"
#include "sim/study/study.h"

namespace hdpsim {

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
