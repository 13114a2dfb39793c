#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/analysis/explanation.h"
#include "sim/analysis/metrics.h"
#include "sim/study/study.h"

namespace hdpsim {

/// Why a step of a run takes as long as it does. The step is simulated once as it is, and once for each possible
/// improvement: kernels, links between and within nodes, copies to the host twice as fast, slow devices and degraded
/// links at full speed. The plan stays the same. The case that no rank waits for others is a bound: the mean time that
/// ranks are busy.
[[nodiscard]] Explanation explain(const StudyPoint& point, std::size_t plan, std::int64_t step);

/// The step that stands for a run: the one with the time nearest to the median; the first of several.
[[nodiscard]] std::int64_t typical_step(const Run& run);

}  // namespace hdpsim
