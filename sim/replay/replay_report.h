#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/output_folder.h"
#include "sim/document/document.h"
#include "sim/document/json.h"
#include "sim/replay/replay.h"

namespace hdpsim {

/// The result for a person at a terminal: a row per plan, how lengths drift, where plans lose their lead, and why the
/// slowest steps are slow.
[[nodiscard]] std::string replay_table(const ReplayResult& result);

/// The figures of one plan, for the JSON and the page. Times in seconds, memory in GB.
[[nodiscard]] Json plan_json(const ReplayResult& result, std::size_t plan);
/// The result as JSON, schema `hdpsim.replay/1`: `study` is the resolved study, `version` that of the program. Times in
/// seconds, lengths in tokens, memory in GB.
[[nodiscard]] std::string replay_json(const ReplayResult& result, const Value& study, std::string_view version);

/// The same as one HTML page that opens without a network: step times and lengths over the steps as charts.
[[nodiscard]] std::string replay_page(const ReplayResult& result);

/// Writes the files of `hdpsim replay --out` that summarize a result: study.yaml, replay.html and replay.json.
/// MachineError if a file cannot be written.
void write_replay(OutputFolder& folder, const ReplayResult& result, const Study& study, std::string_view version);
/// Names of the files of a replay besides the journal ...
[[nodiscard]] std::vector<std::string> replay_file_names();
/// ... and of those that grow in its folder during replay(), also while they are incomplete.
[[nodiscard]] std::vector<std::string> replay_growing_names();

}  // namespace hdpsim
