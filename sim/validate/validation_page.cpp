#include "sim/validate/validation_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/document/json.h"
#include "sim/page/page.h"
#include "sim/page/page_files.h"
#include "sim/report/page/page_data.h"

namespace hdpsim {
namespace {

Json row_json(const ValidationRow& row) {
  return {{"set", row.set},
          {"case", row.case_name},
          {"quantity", row.quantity},
          {"unit", row.unit},
          {"published", rounded(row.published)},
          {"predicted", row.predicted ? Json(rounded(*row.predicted)) : Json()},
          {"error", row.predicted ? Json(rounded(row.error())) : Json()},
          {"why_not", row.not_predicted},
          {"fitted", row.fitted},
          {"source", row.source}};
}

Json lines_json(const LineErrors& lines) {
  return {{"micro_batch_error", rounded(lines.micro_batch_error)},
          {"published_rest", rounded(lines.published_rest)},
          {"predicted_rest", rounded(lines.predicted_rest)}};
}

Json set_json(const ValidationSummary& set) {
  return {{"set", set.set},
          {"quantity", set.quantity},
          {"rows", set.rows},
          {"predicted", set.predicted},
          {"median", rounded(set.median_abs_error)},
          {"mean", rounded(set.mean_abs_error)},
          {"worst", rounded(set.worst_abs_error)},
          {"bias", rounded(set.median_error)},
          {"ranking", set.ranking ? Json(rounded(*set.ranking)) : Json()},
          {"lines", set.lines ? lines_json(*set.lines) : Json()}};
}

// "Of 891 published figures 880 are predicted; the median error of a set is from 2.1 to 36.0 %."
std::string lead_of(const std::vector<ValidationRow>& rows, const std::vector<ValidationSummary>& sets) {
  const auto predicted =
      std::count_if(rows.begin(), rows.end(), [](const ValidationRow& row) { return row.predicted.has_value(); });
  double least = 1e300;
  double most = 0;
  for (const ValidationSummary& set : sets) {
    if (set.predicted == 0) continue;
    least = std::min(least, set.median_abs_error);
    most = std::max(most, set.median_abs_error);
  }
  const std::string text = fmt::format("Of {} published figures {} are predicted", rows.size(), predicted);
  if (least > most) return text + ".";
  if (sets.size() == 1) return text + fmt::format("; the median error is {:.1f} %.", 100 * least);
  return text + fmt::format("; the median error of a set is from {:.1f} to {:.1f} %.", 100 * least, 100 * most);
}

}  // namespace

std::string validation_page(const std::vector<ValidationRow>& rows) {
  const std::vector<ValidationSummary> sets = summarize(rows);
  Json data = {{"plans", Json::array()},
               {"answer", {{"lead", lead_of(rows, sets)}, {"notes", Json::array()}}},
               {"sets", Json::array()},
               {"rows", Json::array()}};
  for (const ValidationSummary& set : sets) data["sets"].push_back(set_json(set));
  for (const ValidationRow& row : rows) data["rows"].push_back(row_json(row));
  return html_page("Predicted against published", page_files::validation_js, json_line(data));
}

}  // namespace hdpsim
