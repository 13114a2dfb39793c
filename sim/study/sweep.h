#pragma once

#include <vector>

#include "sim/analysis/metrics.h"
#include "sim/document/document.h"

namespace hdpsim {

/// A study with the values of one combination of its sweep put in.
struct SweepPoint {
  std::vector<RunInfo::Coordinate> coordinates;
  Value study;  ///< Without `sweep`.
};

/// The maximum number of points in a sweep: all are read before the first is simulated, 10,000 in about a second.
inline constexpr std::size_t most_points = 10'000;

/// All combinations of the lists under `sweep`, in the order of the file; the last path varies fastest. Or, where the
/// sweep is itself a list, its points with their names, which are their only coordinate (`label`):
///     sweep: [{label: alone}, {label: shared, set: {background: [...]}}]
/// One point if there is no sweep. Paths that do not exist, values that are not lists and empty lists are reported.
[[nodiscard]] std::vector<SweepPoint> expand_sweep(const Value& study, Diagnostics& diagnostics);

}  // namespace hdpsim
