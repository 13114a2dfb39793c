#include "sim/validate/validation_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/document/json.h"
#include "sim/page/page.h"
#include "sim/page/page_files.h"
#include "sim/validate/validation_figures.h"

namespace hdpsim {
namespace {

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
  const Json data = {{"plans", Json::array()},
                     {"answer", {{"lead", lead_of(rows, sets)}, {"notes", Json::array()}}},
                     {"sets", validation_set_figures().json_list(sets)},
                     {"rows", validation_row_figures().json_list(rows)}};
  return html_page("Predicted against published", page_files::validation_js, json_line(data));
}

}  // namespace hdpsim
