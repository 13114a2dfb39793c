#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/output_folder.h"
#include "sim/document/document.h"
#include "sim/study/study.h"
#include "sim/study/study_options.h"
#include "sim/tune/tune_figures.h"

namespace hdpsim {

/// The result for a person at a terminal: the best candidates, the front, and why others cannot run.
[[nodiscard]] std::string tune_table(const TuneResult& result, const std::optional<Price>& price);

/// The rows of candidate_figures(), which point at the arguments.
[[nodiscard]] std::vector<RankedCandidate> ranked_candidates(const TuneResult& result,
                                                             const std::optional<Price>& price);
/// These as CSV.
[[nodiscard]] std::string tune_csv(const TuneResult& result, const std::optional<Price>& price);

/// The result as JSON, schema `hdpsim.tuning/1`: `study` is the resolved study, `version` that of the program.
[[nodiscard]] std::string tune_json(const TuneResult& result, const std::optional<Price>& price, const Value& study,
                                    std::string_view version);

/// The same as one HTML page that opens without a network: the front as a chart, the best of each plan, the candidates.
[[nodiscard]] std::string tune_page(const TuneResult& result, const std::optional<Price>& price);
/// How many candidates there were, and what the search has cost: a sentence or two.
[[nodiscard]] std::string tune_effort(const TuneResult& result);
/// That the memory of the best candidate is at risk, and the best one whose is not; empty if it is not at risk.
[[nodiscard]] std::string tune_risk(const TuneResult& result);

/// Writes the files of `hdpsim tune --out`: study.yaml, best.yaml, candidates.csv, tune.json and tune.html.
/// MachineError if a file cannot be written.
void write_tuning(OutputFolder& folder, const TuneResult& result, const Study& study, std::string_view version);
/// Names of the files of write_tuning().
[[nodiscard]] std::vector<std::string> tuning_file_names();

}  // namespace hdpsim
