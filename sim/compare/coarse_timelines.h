#pragma once

#include <vector>

#include "sim/compare/course_comparison.h"
#include "sim/compare/timeline_sets.h"

namespace hdpsim {

/// Whether any timeline that was measured has no instructions: then nothing joins it with a prediction but ranks,
/// micro-batches and activities. Reads their first lines.
[[nodiscard]] bool any_is_coarse(const std::vector<TimelineSet>& sets);

/// Each measured timeline compared with its prediction by rank, micro-batch and activity. InputError, with all
/// differences: other steps, plans, ranks or micro-batches, pipelines.
[[nodiscard]] std::vector<CourseComparison> compare_coarsely(const std::vector<TimelineSet>& sets);

}  // namespace hdpsim
