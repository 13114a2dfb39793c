#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "sim/report/metrics.h"
#include "sim/study/study.h"

namespace hdpsim {

/// Writes study.yaml (the resolved study, which gives the same results again), runs.csv, steps.csv, ranks.csv,
/// links.csv, memory.csv, timing.csv and, last, result.json. All but timing.csv have the same bytes for the same study.
/// MachineError if one cannot be written.
void write_results(const std::filesystem::path& folder, const Study& study, const std::vector<Run>& runs,
                   std::string_view version);

}  // namespace hdpsim
