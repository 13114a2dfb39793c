#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/plan/step_bounds.h"
#include "sim/study/study.h"

namespace hdpsim {

/// How one plan of a step stands by the planners' work model, before anything is simulated.
struct PlanEstimate {
  std::string name;
  std::int64_t micro_batches = 0;
  double step = 0;      ///< Seconds (PlanTime::step).
  double idle = 0;      ///< The share of the ranks' time in which they wait for others.
  std::string refusal;  ///< Why the policy makes no plan of the batch; if not empty, the figures are 0.
};

/// All plans of a study for one step, and what no plan without offload beats.
struct StepEstimates {
  std::vector<PlanEstimate> plans;
  StepBounds bounds;
};

[[nodiscard]] StepEstimates estimate_plans(const Study& study, const StudyPoint& point, std::int64_t step);

}  // namespace hdpsim
