#include "sim/report/validation_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/report/csv.h"

namespace hdpsim {
namespace {

using Json = nlohmann::ordered_json;

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
  return fmt::format("{} {:>10}  {:>8}{}\n", head, figure(*row.predicted), signed_percent(row.error()),
                     row.fitted ? "  fitted" : "");
}

std::string summary_line(const ValidationSummary& set, std::size_t width) {
  const std::string counts = fmt::format("  {:<{}}  {:>5}  {:>9}", set.set, width, set.rows, set.predicted);
  if (set.predicted == 0) return counts + "\n";
  return fmt::format("{}  {:>8}  {:>8}  {:>8}  {:>8}  {:>8}\n", counts, percent(set.median_abs_error),
                     percent(set.mean_abs_error), percent(set.worst_abs_error), signed_percent(set.median_error),
                     set.ranking ? fmt::format("{:.2f}", *set.ranking) : "");
}

std::string summary_table(const std::vector<ValidationSummary>& summaries) {
  std::size_t width = 3;
  for (const ValidationSummary& set : summaries) width = std::max(width, set.set.size());
  std::string text = fmt::format("  {:<{}}  {:>5}  {:>9}  {:>8}  {:>8}  {:>8}  {:>8}  {:>8}\n", "set", width, "rows",
                                 "predicted", "median", "mean", "worst", "bias", "ranking");
  for (const ValidationSummary& set : summaries) text += summary_line(set, width);
  for (const ValidationSummary& set : summaries) {
    for (const std::string& reason : set.not_predicted)
      text += fmt::format("  {}: not predicted: {}\n", set.set, reason);
    if (set.fitted > 0)
      text += fmt::format(
          "  {}: {} rows are fitted, and no part of its errors: a constant of the set was taken from them\n", set.set,
          set.fitted);
  }
  return text +
         "median, mean, worst: of the absolute errors; bias: the median error with its sign;\n"
         "ranking: Kendall's tau between published and predicted order of the plans of one job\n";
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

std::string number_field(const std::optional<double>& number) {
  return number ? fmt::format("{}", *number) : "";
}

std::string rows_csv(const std::vector<ValidationRow>& rows) {
  std::string text = "set,case,quantity,unit,published,predicted,error,fitted,not_predicted,source\n";
  for (const ValidationRow& row : rows) {
    const auto error = row.predicted ? std::optional(row.error()) : std::nullopt;
    text += fmt::format("{},{},{},{},{},{},{},{},{},{}\n", csv_field(row.set), csv_field(row.case_name),
                        csv_field(row.quantity), csv_field(row.unit), row.published, number_field(row.predicted),
                        number_field(error), row.fitted, csv_field(row.not_predicted), csv_field(row.source));
  }
  return text;
}

Json json_of(const std::optional<double>& number) {
  return number ? Json(*number) : Json(nullptr);
}

Json json_of(const ValidationRow& row) {
  Json json = {{"set", row.set},
               {"case", row.case_name},
               {"quantity", row.quantity},
               {"published", row.published},
               {"predicted", json_of(row.predicted)},
               {"unit", row.unit},
               {"fitted", row.fitted},
               {"source", row.source}};
  if (!row.predicted) json["not_predicted"] = row.not_predicted;
  return json;
}

Json json_of(const ValidationSummary& set) {
  const auto if_any = [&](double figure) { return set.predicted > 0 ? Json(figure) : Json(nullptr); };
  return {{"set", set.set},
          {"rows", set.rows},
          {"median_abs_error", if_any(set.median_abs_error)},
          {"worst_abs_error", if_any(set.worst_abs_error)},
          {"predicted", set.predicted},
          {"fitted", set.fitted},
          {"mean_abs_error", if_any(set.mean_abs_error)},
          {"median_error", if_any(set.median_error)},
          {"kendall_tau", json_of(set.ranking)}};
}

std::string json(const std::vector<ValidationRow>& rows) {
  Json document = {{"schema", "hdpsim.validation/1"}, {"rows", Json::array()}, {"sets", Json::array()}};
  for (const ValidationRow& row : rows) document["rows"].push_back(json_of(row));
  for (const ValidationSummary& set : summarize(rows)) document["sets"].push_back(json_of(set));
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string formatted(const std::vector<ValidationRow>& rows, Format format) {
  switch (format) {
    case Format::table:
      return table(rows);
    case Format::csv:
      return rows_csv(rows);
    case Format::json:
      return json(rows);
  }
  return {};
}

std::string summaries_csv(const std::vector<ValidationSummary>& summaries) {
  std::string text =
      "set,rows,predicted,fitted,median_abs_error,mean_abs_error,worst_abs_error,median_error,kendall_tau\n";
  for (const ValidationSummary& set : summaries) {
    text += fmt::format("{},{},{},{},", csv_field(set.set), set.rows, set.predicted, set.fitted);
    text += set.predicted == 0 ? ",,,,"
                               : fmt::format("{},{},{},{},", set.median_abs_error, set.mean_abs_error,
                                             set.worst_abs_error, set.median_error);
    text += number_field(set.ranking) + "\n";
  }
  return text;
}

}  // namespace hdpsim
