#pragma once

#include <cstdint>
#include <optional>

#include "sim/engine/timeline.h"
#include "sim/results/figure_page.h"
#include "sim/results/figure_table.h"

namespace hdpsim {

/// The figures that are kept of one real run of a step, and of its prediction.
struct ExecutedRun {
  std::int64_t step = 0;
  std::int64_t run = 1;
  double loss = 0;
  std::int64_t tokens = 0;
  double core_share = 1;                     ///< The predicted one.
  Breakdown predicted, measured, processor;  ///< Means over the ranks.
  Duration exposed;                          ///< Longest time that a rank waited for its plan.
  Duration planning;
  std::optional<Duration> at_pace;
};

/// The figures of steps.csv.
[[nodiscard]] const FigureTable<ExecutedRun>& executed_run_figures();

/// The figures of an execution's results.
[[nodiscard]] FigureSection execution_figures();

}  // namespace hdpsim
