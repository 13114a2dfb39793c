#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/compare/step_course.h"
#include "sim/plan/plan_document.h"
#include "sim/study/study.h"

namespace hdpsim {

/// Whether a name of `--plan` is that of a file with a plan: it ends in .json.
[[nodiscard]] bool names_plan_file(const std::string& plan);

/// The step that a plan file states, for the model and mesh of a point, with the batch that the plan states. InputError
/// with all problems of the file, and with all that does not fit the point: ranks, devices a rank, layers.
[[nodiscard]] PointStep step_of_plan_file(const std::string& file, const StudyPoint& point);

/// What the file says of its origin, if that is another cluster, model, mesh or training than the point's; else empty.
[[nodiscard]] std::string other_origin(const std::string& file, const Study& study, const StudyPoint& point);

/// The course of a step as it is simulated: in full detail, so that its passes are known, unless it has more than ten
/// million instructions. InputError for pipelines, whose stages traces do not tell apart.
[[nodiscard]] StepCourse predicted_course(const PointStep& planned);

}  // namespace hdpsim
