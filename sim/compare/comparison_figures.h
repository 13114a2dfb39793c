#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/compare/comparison.h"
#include "sim/engine/timeline.h"
#include "sim/results/figure_page.h"
#include "sim/results/figure_table.h"

namespace hdpsim {

/// A family of instructions of a plan.
struct ComparedFamily {
  const Comparison* plan = nullptr;
  const FamilyComparison* family = nullptr;
};
/// A worker of a plan: an HDP rank, or in a pipeline one of its stages.
struct ComparedWorker {
  const Comparison* plan = nullptr;
  std::size_t worker = 0;
};

/// All of a plan.
[[nodiscard]] std::vector<ComparedFamily> families_of(const Comparison& plan);
[[nodiscard]] std::vector<ComparedWorker> workers_of(const Comparison& plan);

/// The figures of a family, in families.csv and comparison.json.
[[nodiscard]] const FigureTable<ComparedFamily>& family_figures();
/// The figures of a worker, in ranks.csv and comparison.json.
[[nodiscard]] const FigureTable<ComparedWorker>& worker_figures();

/// The figures of a comparison's results.
[[nodiscard]] FigureSection comparison_figures();

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
