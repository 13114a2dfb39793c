#pragma once

#include <optional>
#include <string>

#include "sim/base/diagnostic.h"
#include "sim/plan/plan.h"

namespace hdpsim {

/// Reports what plan_problems() finds in a plan that read_plan() has read, each problem at its entry of the file: a
/// sequence, a micro-batch or the schedule of a rank. The first 20 are told, the others are counted. Reads the text
/// once more where there are problems.
void report_unsound(const Plan& plan, const std::string& file, const std::string& text, Diagnostics& diagnostics);

/// The plan of a file, if neither read_plan() nor report_unsound() has found a problem. A missing file is reported; one
/// that exists but cannot be read throws MachineError.
[[nodiscard]] std::optional<Plan> load_sound_plan(const std::string& path, Diagnostics& diagnostics);

}  // namespace hdpsim
