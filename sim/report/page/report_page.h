#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/analysis/metrics.h"
#include "sim/document/document.h"
#include "sim/report/page/shown_step.h"
#include "sim/trace/description.h"

namespace hdpsim {

/// All that the report page of a study shows. What is not there (no lengths, no shown step, no timeline, nothing to
/// compare with) has no place on the page.
struct ReportData {
  std::string version;  ///< Of the program.
  Value study;          ///< Resolved: it gives the same results again.
  const std::vector<Run>& runs;
  std::vector<std::optional<Description>> lengths;  ///< By point: of the sequences of all its steps.
  std::vector<std::optional<ShownStep>> steps;      ///< By run.
  std::vector<std::string> timelines{};             ///< By run: paths of timeline files, as seen from the page.
};

/// The page: one HTML file that opens without a network. Where charts were not built in, it has the tables alone and
/// says which option adds charts. The same data give the same bytes. Its size is bounded by the number of runs: maps of
/// ranks have at most `map_cells` cells altogether and 4,096 each, and say how many ranks a cell stands for.
[[nodiscard]] std::string report_page(const ReportData& data);

inline constexpr std::size_t map_cells = 200'000;

}  // namespace hdpsim
