#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/output_folder.h"
#include "sim/document/document.h"
#include "sim/report/csv.h"
#include "sim/study/study.h"
#include "sim/study/tune_options.h"
#include "sim/tune/tune.h"

namespace hdpsim {

/// For a person at a terminal: the best candidates, the front, and why others cannot run.
[[nodiscard]] std::string tune_table(const TuneResult& result, const std::optional<Price>& price);

/// One row a candidate, in the order of the ranking.
void write_candidates(const TuneResult& result, const std::optional<Price>& price, TableSink& sink);
/// The same as CSV.
[[nodiscard]] std::string tune_csv(const TuneResult& result, const std::optional<Price>& price);

/// Schema `hdpsim.tuning/1`: `study` is the resolved study, `version` that of the program.
[[nodiscard]] std::string tune_json(const TuneResult& result, const std::optional<Price>& price, const Value& study,
                                    std::string_view version);

/// Writes what `hdpsim tune --out` writes of a result: study.yaml, best.yaml, candidates.csv and tune.json. MachineError
/// if a file cannot be written.
void write_tuning(OutputFolder& folder, const TuneResult& result, const Study& study, std::string_view version);
/// Their names ...
[[nodiscard]] std::vector<std::string> tuning_file_names();
/// ... and those of the file that tune() lets grow in its folder, also while it is not complete.
[[nodiscard]] std::vector<std::string> tuning_journal_names();

}  // namespace hdpsim
