#pragma once

#include <string>

#include "sim/base/units.h"
#include "sim/plan/plan.h"
#include "sim/relayout/relayout.h"
#include "sim/study/study_point.h"

namespace hdpsim {

/// Why the pipelines of a point cannot be laid out anew; empty if they can. They have tensor-parallel groups of a power
/// of two within nodes, a dense model whose layers are alike, the schedule 1f1b, and each micro-batch on one rank.
[[nodiscard]] std::string relayout_problem(const StudyPoint& point);
[[nodiscard]] std::string relayout_problem(const Plan& plan);

/// The job of a point for relaid(): what a layer takes on groups of tp, tp / 2, ... devices by the planners' work model
/// for each, for the mean micro-batch of `plan`; the memory of the point's devices; `threshold` of relaid(). Seconds of
/// a pipeline are schedule_seconds() of its passes. Devices are those of the cluster. O(HDP ranks) for each cut.
[[nodiscard]] RelayoutJob relayout_job(const StudyPoint& point, const Plan& plan, double threshold);

/// Bytes of a layer's parameters and optimizer states on all devices of a tensor-parallel group.
[[nodiscard]] double layer_state_bytes(const StudyPoint& point);

}  // namespace hdpsim
