#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/analysis/metrics.h"
#include "sim/base/output_folder.h"
#include "sim/study/study.h"

namespace hdpsim {

struct StudyReportOptions {
  std::function<bool()> stop = [] { return false; };                  ///< Asked before every step.
  std::function<void(const std::string&)> note = [](const auto&) {};  ///< Gets what the user should know.
};

/// Writes what Study::output asks for: report.html and timelines/*.json.gz, one a run. A step of each run is simulated
/// once more for it, since runs keep no plans and no timelines; all bytes are the same for the same study. Nothing
/// asked for: nothing done. False if it was stopped, with files missing. MachineError if a file cannot be written.
[[nodiscard]] bool write_report(OutputFolder& folder, const Study& study, const std::vector<Run>& runs,
                                std::string_view version, const StudyReportOptions& options = {});

/// The text of report.html, whether the study asks for it or not. Nothing if it was stopped.
[[nodiscard]] std::optional<std::string> study_page(const Study& study, const std::vector<Run>& runs,
                                                    std::string_view version, const StudyReportOptions& options = {});

}  // namespace hdpsim
