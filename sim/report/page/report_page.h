#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/analysis/explanation.h"
#include "sim/analysis/metrics.h"
#include "sim/document/document.h"
#include "sim/report/page/shown_step.h"
#include "sim/run/advice.h"
#include "sim/run/tokens_curve.h"
#include "sim/trace/description.h"

namespace hdpsim {

/// The contents of the report page of a study. Absent parts (no lengths, no shown step, no timeline, no plan to compare
/// with) are left out of the page.
struct ReportData {
  std::string version;  ///< Version of the program.
  Value study;          ///< The resolved study, which gives the same results again.
  const std::vector<Run>& runs;
  std::vector<std::optional<Description>> lengths;  ///< By point: lengths of the sequences of all its steps.
  std::vector<std::optional<ShownStep>> steps;      ///< By run.
  std::vector<std::string> timelines{};             ///< By run: paths of timeline files, as seen from the page.
  std::vector<std::optional<Explanation>> why{};    ///< By run; see explain().
  RunAdvice advice{};                               ///< For the notes of the answer.
  std::vector<TokensRow> tokens{};                  ///< Of the last point; see tokens_curve().
};

/// The page (html_page). It begins with the answer (answer_of). Its size is bounded by the number of runs: maps of
/// ranks have at most `map_cells` cells altogether and 4,096 each, and say how many ranks a cell stands for.
[[nodiscard]] std::string report_page(const ReportData& data);

inline constexpr std::size_t map_cells = 200'000;

}  // namespace hdpsim
