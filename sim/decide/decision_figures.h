#pragma once

#include <vector>

#include "sim/decide/cluster_search.h"
#include "sim/results/figure_page.h"
#include "sim/results/figure_table.h"

namespace hdpsim {

/// A decision, and the search that it is a size of; null without one.
struct DecisionRow {
  const Decision* decision = nullptr;
  const PlanSizes* search = nullptr;
};

/// The figures of a row, in decision.csv and decision.json.
[[nodiscard]] const FigureTable<DecisionRow>& decision_row_figures();

/// The figures of a decision's results.
[[nodiscard]] FigureSection decision_figures();

}  // namespace hdpsim
