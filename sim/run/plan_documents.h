#pragma once

#include <cstdint>
#include <string>

#include "sim/plan/plan_document.h"
#include "sim/study/study.h"

namespace hdpsim {

/// A plan of a point with what a runtime must know besides it. Two studies of one name that differ in nothing but their
/// data and plans give the same. `version` is that of hdpsim.
[[nodiscard]] PlanDocument document_of(const Study& study, const StudyPoint& point, Plan plan,
                                       const std::string& version);

/// The name of the `place`-th sequence of step `step`, "3/17", where nobody has given it another.
[[nodiscard]] std::string name_of_sequence(std::int64_t step, std::int64_t place);

/// The plan of a step of a study, as make_plan() makes it, as a document. Its sequences are those of the step in their
/// order; under a policy that holds sequences back they have ids, name_of_sequence() with the step of the data in which
/// they came.
[[nodiscard]] PlanDocument planned_document(const Study& study, const StudyPoint& point, std::size_t plan,
                                            std::int64_t step, const std::string& version);

}  // namespace hdpsim
