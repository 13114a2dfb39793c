#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/decide/cluster_search.h"
#include "sim/document/document.h"
#include "sim/results/csv.h"

namespace hdpsim {

/// What `hdpsim decide` has found.
struct DecisionResult {
  std::string study;
  std::string setting;  ///< Model, cluster, mesh and batches, where all points have the same.
  double tokens = 0;
  StudyPrices prices;
  std::vector<Decision> decisions;  ///< Of the runs of the study; empty after a search.
  std::optional<double> days{};     ///< What was searched for.
  std::vector<PlanSizes> search{};
};

/// What `hdpsim decide` begins with: the study, the tokens, the days of a search, and prices of a file, if one is
/// named, and of the study. InputError for a file that is wrong, or that has no price for a cluster of the study.
[[nodiscard]] DecisionResult asked_decision(const Study& study, double tokens, std::optional<double> days,
                                            const std::string& price_file);

/// For a person at a terminal: a row a run, or of a search the answer of each plan and what was simulated for it.
[[nodiscard]] std::string decision_table(const DecisionResult& result);
/// The same as a page, with days over GPUs as a chart where sizes were searched.
[[nodiscard]] std::string decision_page(const DecisionResult& result);
/// A row a run or a size that was simulated, as decision.csv has them.
void write_decisions(const DecisionResult& result, TableSink& sink);
[[nodiscard]] std::string decision_csv(const DecisionResult& result);
/// Schema `hdpsim.decision/1`; `study` is the resolved study, `version` that of the program.
[[nodiscard]] std::string decision_json(const DecisionResult& result, const Value& study, std::string_view version);

}  // namespace hdpsim
