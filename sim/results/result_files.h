#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/analysis/metrics.h"
#include "sim/base/output_folder.h"
#include "sim/study/study.h"

namespace hdpsim {

inline constexpr std::string_view result_schema_name = "hdpsim.result/1";
inline constexpr char result_file[] = "result.json";

/// The whole result, schema result_schema_name: `study` is the resolved study, `version` that of the program.
[[nodiscard]] std::string result_json(const Value& study, std::string_view version, const std::vector<Run>& runs);

/// Its JSON schema: configs/schemas/result.schema.json.
[[nodiscard]] std::string result_schema();

/// Writes study.yaml (the resolved study, which gives the same results again), runs.csv, steps.csv, ranks.csv,
/// links.csv, memory.csv, timing.csv and, last, result.json. All but timing.csv have the same bytes for the same study.
/// MachineError if one cannot be written.
void write_results(OutputFolder& folder, const Study& study, const std::vector<Run>& runs, std::string_view version);

/// Names of these files, and of the page of write_report().
[[nodiscard]] std::vector<std::string> result_file_names();

}  // namespace hdpsim
