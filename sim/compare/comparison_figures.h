#pragma once

#include <cstddef>

#include "sim/compare/comparison.h"
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

/// The figures of a family, in families.csv and comparison.json.
[[nodiscard]] const FigureTable<ComparedFamily>& family_figures();
/// The figures of a worker, in ranks.csv and comparison.json.
[[nodiscard]] const FigureTable<ComparedWorker>& worker_figures();

/// The figures of a comparison's results.
[[nodiscard]] FigureSection comparison_figures();

}  // namespace hdpsim
