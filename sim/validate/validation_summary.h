#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/trust/run_kind.h"
#include "sim/validate/step_lines.h"

namespace hdpsim {

/// One published figure and its prediction.
struct ValidationRow {
  std::string set;
  std::string case_name;
  std::string quantity;  ///< "step_time_s", "speedup hdp-balance", ...
  std::string unit;      ///< "s", "tokens/s", "GB", "x".
  double published = 0;  ///< Positive.
  std::optional<double> predicted;
  std::string not_predicted{};  ///< Why there is no prediction.
  std::string source;
  bool fits = true;         ///< The plan fits the memory of devices and hosts, as predicted, ...
  bool is_at_risk = false;  ///< ... but not with the largest gaps of the allocator (MemoryFit::at_risk).
  bool fitted = false;      ///< A constant of the set was fitted to it, so its error does not count for the set.
  bool over_study =
      false;          ///< A speed-up or saving over another study (ValidationSet::speedup_over), not over another plan.
  std::string job{};  ///< Cases with the same text are plans of one job, which can be ranked; may be empty.
  std::string line{};        ///< Cases with the same text differ in the number of micro-batches alone; may be empty.
  double micro_batches = 0;  ///< Of a rank in a step, where `line` is stated.
  RunKind run{};             ///< What ran, where there is a prediction.
  double memory_use = 0;     ///< What the fullest device needs of what it has, where there is a prediction.

  /// predicted / published - 1, for a row that is predicted.
  [[nodiscard]] double error() const;
  /// The error of the time that the figure stands for: that of a rate is published / predicted - 1. Below 0 is too
  /// short, whatever the quantity.
  [[nodiscard]] double time_error() const;
  /// What kind of quantity it is: the quantity without the plan behind it ("speedup").
  [[nodiscard]] std::string kind() const;
};

/// How well one kind of quantity of a set was predicted, over the predicted rows to which no constant of the set was
/// fitted.
struct ValidationSummary {
  std::string set;
  std::string quantity;  ///< ValidationRow::kind() of its rows.
  std::int64_t rows = 0;
  std::int64_t predicted = 0;   ///< Rows whose errors count.
  std::int64_t fitted = 0;      ///< Predicted rows whose errors do not count.
  double median_abs_error = 0;  ///< Median absolute relative error (the next two likewise); 0 without a predicted row.
  double worst_abs_error = 0;
  double mean_abs_error = 0;
  double median_error = 0;                 ///< Median of time_error().
  std::optional<double> ranking;           ///< kendall_tau() over its jobs; empty if no two plans can be ranked.
  std::optional<LineErrors> lines;         ///< Of step times; empty if no plan has two numbers of micro-batches.
  std::vector<std::string> not_predicted;  ///< Reasons with their counts: "12 x pipelines cannot be ...".
};

/// One summary per set and kind of quantity, in the order in which they first occur, set by set.
[[nodiscard]] std::vector<ValidationSummary> summarize(const std::vector<ValidationRow>& rows);

}  // namespace hdpsim
