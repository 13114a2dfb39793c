#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/analysis/metrics.h"
#include "sim/base/diagnostic.h"
#include "sim/run/runner.h"
#include "sim/study/study.h"
#include "sim/tune/tune.h"

namespace hdpsim {

// The lines of JSON that answer a page.

/// `notes` is null as long as only the first step has been simulated.
[[nodiscard]] std::string answer_line(const Study& study, const std::vector<Run>& runs, std::string_view version,
                                      const std::vector<std::string>* notes);
[[nodiscard]] std::string progress_line(const Progress& progress);
[[nodiscard]] std::string progress_line(const TuneProgress& progress);
/// Every problem with the path of the value that it belongs to in the study as changed, and the text that the command
/// prints.
[[nodiscard]] std::string problems_line(const Diagnostics& found, const Value& study);
/// The study as a file. A dropped file, which lies below `dropped`, is named without its folder.
[[nodiscard]] std::string study_line(const Value& resolved, const std::string& dropped);
[[nodiscard]] std::string report_line(const std::string& page);
[[nodiscard]] std::string failure_line(const std::string& text);

}  // namespace hdpsim
