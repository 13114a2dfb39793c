#pragma once

#include <vector>

#include "sim/analysis/metrics.h"
#include "sim/document/document.h"

namespace hdpsim {

/// A study with the values of one combination of its sweep in their places.
struct SweepPoint {
  std::vector<RunInfo::Coordinate> coordinates;
  Value study;  ///< Without `sweep`.
};

/// No sweep has more points than this: they are all read before the first is simulated, 10,000 in about a second.
inline constexpr std::size_t most_points = 10'000;

/// All combinations of the lists under `sweep`, in the order of the file; the last path varies fastest. One point if
/// there is no sweep. Paths that lead nowhere, values that are no lists and empty lists are reported.
[[nodiscard]] std::vector<SweepPoint> expand_sweep(const Value& study, Diagnostics& diagnostics);

}  // namespace hdpsim
