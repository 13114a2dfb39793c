#pragma once

#include "sim/results/figure_page.h"
#include "sim/results/figure_table.h"
#include "sim/validate/validation_summary.h"

namespace hdpsim {

/// The figures of a published figure and its prediction, in validation.csv and validation.json.
[[nodiscard]] const FigureTable<ValidationRow>& validation_row_figures();
/// The figures of a set, in sets.csv and validation.json.
[[nodiscard]] const FigureTable<ValidationSummary>& validation_set_figures();

/// The figures of a validation's results.
[[nodiscard]] FigureSection validation_figures();

}  // namespace hdpsim
