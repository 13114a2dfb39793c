#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/analysis/explanation.h"
#include "sim/analysis/metrics.h"
#include "sim/study/study.h"

namespace hdpsim {

/// Why a step of a run takes as long as it does. The step is simulated once more as it is, and once for each thing that
/// might be better: kernels, links between and within nodes, copies to the host twice as fast, slow devices and
/// degraded links as they should be. The plan stays what it is. Nobody waiting for others is a bound: the mean time
/// that ranks are busy.
[[nodiscard]] Explanation explain(const StudyPoint& point, std::size_t plan, std::int64_t step);

/// The step of a run that stands for all: its time is nearest to the median; the first of several.
[[nodiscard]] std::int64_t typical_step(const Run& run);

}  // namespace hdpsim
