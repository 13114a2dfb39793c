#pragma once

#include "calib/measure/drift.h"
#include "sim/results/figure_page.h"
#include "sim/results/figure_table.h"

namespace hdpsim::app {

/// The figures of a family that `hdpsim calibrate --check` has timed again.
[[nodiscard]] const FigureTable<calib::FamilyDrift>& family_drift_figures();
/// Those of them that have a column, or a place in JSON, for the reference page.
[[nodiscard]] FigureSection drift_figures();

}  // namespace hdpsim::app
