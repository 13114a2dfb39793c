#include "sim/validate/validation_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/document/json.h"
#include "sim/validate/validation_figures.h"

namespace hdpsim {
namespace {

// Four significant digits, as many as publications state.
std::string figure(double value) {
  return fmt::format("{:.4g}", value);
}

std::string percent(double share) {
  return fmt::format("{:.1f}%", 100 * share);
}

std::string signed_percent(double share) {
  return fmt::format("{:+.1f}%", 100 * share);
}

std::size_t widest(const std::vector<ValidationRow>& rows, std::string ValidationRow::*field) {
  std::size_t width = 0;
  for (const ValidationRow& row : rows) width = std::max(width, (row.*field).size());
  return width;
}

std::string row_line(const ValidationRow& row, std::size_t case_width, std::size_t quantity_width) {
  const std::string head = fmt::format("  {:<{}}  {:<{}}  {:>10} {:<9}", row.case_name, case_width, row.quantity,
                                       quantity_width, figure(row.published), row.unit);
  if (!row.predicted) return fmt::format("{} not predicted: {}\n", head, row.not_predicted);
  return fmt::format("{} {:>10}  {:>8}{}{}\n", head, figure(*row.predicted), signed_percent(row.error()),
                     row.fitted ? "  fitted" : "",
                     !row.fits        ? "  does not fit"
                     : row.is_at_risk ? "  memory at risk"
                                      : "");
}

/// Widths of the columns of names.
struct Widths {
  std::size_t set = 3;
  std::size_t quantity = 8;
};

// The line through a set's steps: the error of a micro-batch, and the rest of a step as published and as predicted.
std::string line_cells(const ValidationSummary& set) {
  if (!set.lines) return {};
  return fmt::format("  {:>11}  {:>11}", signed_percent(set.lines->micro_batch_error),
                     fmt::format("{:.2f} / {:.2f}", set.lines->published_rest, set.lines->predicted_rest));
}

std::string summary_line(const ValidationSummary& set, const Widths& widths) {
  const std::string counts = fmt::format("  {:<{}}  {:<{}}  {:>5}  {:>9}", set.set, widths.set, set.quantity,
                                         widths.quantity, set.rows, set.predicted);
  if (set.predicted == 0) return counts + "\n";
  return fmt::format("{}  {:>8}  {:>8}  {:>8}  {:>8}  {:>8}{}\n", counts, percent(set.median_abs_error),
                     percent(set.mean_abs_error), percent(set.worst_abs_error), signed_percent(set.median_error),
                     set.ranking ? fmt::format("{:.2f}", *set.ranking) : "", line_cells(set));
}

std::string summary_table(const std::vector<ValidationSummary>& summaries) {
  Widths widths;
  for (const ValidationSummary& set : summaries) {
    widths = {std::max(widths.set, set.set.size()), std::max(widths.quantity, set.quantity.size())};
  }
  const bool has_lines = std::any_of(summaries.begin(), summaries.end(),
                                     [](const ValidationSummary& set) { return set.lines.has_value(); });
  std::string text = fmt::format("  {:<{}}  {:<{}}  {:>5}  {:>9}  {:>8}  {:>8}  {:>8}  {:>8}  {:>8}{}\n", "set",
                                 widths.set, "quantity", widths.quantity, "rows", "predicted", "median", "mean",
                                 "worst", "bias", "ranking", has_lines ? "  micro-batch         rest" : "");
  for (const ValidationSummary& set : summaries) text += summary_line(set, widths);
  for (const ValidationSummary& set : summaries) {
    for (const std::string& reason : set.not_predicted)
      text += fmt::format("  {} {}: not predicted: {}\n", set.set, set.quantity, reason);
    if (set.fitted > 0)
      text += fmt::format(
          "  {} {}: {} rows are fitted, and no part of its errors: the profile or a constant of the set was fitted to "
          "them\n",
          set.set, set.quantity, set.fitted);
  }
  return text +
         "median, mean, worst: of the absolute errors; bias: the median error of times with its sign, of rates that "
         "of\n"
         "the times that they imply: minus is too short;\n"
         "ranking: Kendall's tau between published and predicted order of the plans of one job\n" +
         (has_lines ? "micro-batch: error of a in T = a m + c through the steps of a plan with several numbers m of\n"
                      "micro-batches; rest: c / a, published / predicted; both are medians over such plans\n"
                    : "");
}

std::string table(const std::vector<ValidationRow>& rows) {
  const std::size_t case_width = widest(rows, &ValidationRow::case_name);
  const std::size_t quantity_width = widest(rows, &ValidationRow::quantity);
  std::string text;
  const std::string* set = nullptr;
  for (const ValidationRow& row : rows) {
    if (set == nullptr || *set != row.set) {
      text += fmt::format("{}{}\n  {:<{}}  {:<{}}  {:>10} {:<9} {:>10}  {:>8}\n", set == nullptr ? "" : "\n", row.set,
                          "case", case_width, "quantity", quantity_width, "published", "", "predicted", "error");
    }
    set = &row.set;
    text += row_line(row, case_width, quantity_width);
  }
  return text + "\n" + summary_table(summarize(rows));
}

std::string json(const std::vector<ValidationRow>& rows) {
  return json_page({{"schema", "hdpsim.validation/1"},
                    {"rows", validation_row_figures().json_list(rows)},
                    {"sets", validation_set_figures().json_list(summarize(rows))}});
}

}  // namespace

std::string formatted(const std::vector<ValidationRow>& rows, Format format) {
  switch (format) {
    case Format::table:
      return table(rows);
    case Format::csv:
      return validation_row_figures().csv(rows);
    case Format::json:
      return json(rows);
  }
  return {};
}

std::string summaries_csv(const std::vector<ValidationSummary>& summaries) {
  return validation_set_figures().csv(summaries);
}

}  // namespace hdpsim
