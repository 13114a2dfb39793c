#pragma once

#include <cstddef>
#include <vector>

#include "sim/production/production.h"
#include "sim/results/figure_page.h"
#include "sim/results/figure_table.h"

namespace hdpsim {

/// A plan of a variant of a result.
struct ProductionRow {
  const ProductionResult* result = nullptr;
  std::size_t variant = 0;
  std::size_t plan = 0;

  [[nodiscard]] const ProductionRun& run() const { return result->variants[variant].runs[plan]; }
  [[nodiscard]] double tokens_per_gpu_hour() const { return run().tokens_per_gpu_hour(result->gpus); }
  /// Its tokens over those of the same plan in the study as it is.
  [[nodiscard]] double over_whole() const;
};
/// All of a result, variant by variant.
[[nodiscard]] std::vector<ProductionRow> rows_of(const ProductionResult& result);

/// The figures of such a row, in production.csv and production.json.
[[nodiscard]] const FigureTable<ProductionRow>& production_row_figures();

/// An event of a plan of the study as it is.
struct ProductionEventRow {
  const std::string* plan = nullptr;
  const ProductionEvent* event = nullptr;
};
/// All of them, plan by plan, in the order of time.
[[nodiscard]] std::vector<ProductionEventRow> event_rows_of(const ProductionResult& result);
/// The figures of events.csv.
[[nodiscard]] const FigureTable<ProductionEventRow>& production_event_figures();

/// What they all mean.
[[nodiscard]] FigureSection production_figures();

}  // namespace hdpsim
