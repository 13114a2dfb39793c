#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/results/csv.h"
#include "sim/results/figure_page.h"

namespace hdpsim {

/// What `hdpsim study` has written into a folder, as its result.json says it.
struct WrittenResult {
  std::string name;  ///< As the user names it.
  Json content;      ///< Checked as far as each run has a point and a plan; what has no number reads as not there.
};

/// Whether a path is a folder of such results, or their result.json itself.
[[nodiscard]] bool holds_result(const std::string& path);

/// Reads the results of these paths. InputError with every problem: no JSON, another schema, no runs.
[[nodiscard]] std::vector<WrittenResult> read_results(const std::vector<std::string>& paths);

/// A run of a result beside the same plan at the same point of the first result.
struct ComparedRun {
  const WrittenResult* result = nullptr;
  const Json* run = nullptr;    ///< Null: this result has no such run.
  const Json* first = nullptr;  ///< Null: the first result has none.
  std::string point;            ///< "data.context 64Ki"; empty without a sweep.
  std::string plan;
};

/// All runs of the results: those of the first in its order, then those that only others have, each with as many rows
/// as there are results. Simulated times are exact, and so is every difference.
[[nodiscard]] std::vector<ComparedRun> compared_runs(const std::vector<WrittenResult>& results);

/// A key of the study that one result states otherwise than the first.
struct ChangedKey {
  std::string path;   ///< "mesh.tp", "plans.1.hdp-balance.offload"
  std::string first;  ///< As a line; empty: not stated.
  std::string here;
};
[[nodiscard]] std::vector<ChangedKey> changed_keys(const WrittenResult& first, const WrittenResult& other);

/// For people: keys that differ, then a block for each plan and point with a line for each result.
[[nodiscard]] std::string results_table(const std::vector<WrittenResult>& results);
/// The same as a page.
[[nodiscard]] std::string results_page(const std::vector<WrittenResult>& results);
/// A row for each run that a result has.
void write_compared_runs(const std::vector<WrittenResult>& results, TableSink& sink);
[[nodiscard]] std::string results_csv(const std::vector<WrittenResult>& results);
/// Schema `hdpsim.result_comparison/1`.
[[nodiscard]] std::string results_json(const std::vector<WrittenResult>& results);

/// The figures of results that are compared.
[[nodiscard]] FigureSection result_comparison_figures();

}  // namespace hdpsim
