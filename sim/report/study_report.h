#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/analysis/metrics.h"
#include "sim/base/output_folder.h"
#include "sim/report/page/shown_step.h"
#include "sim/run/advice.h"
#include "sim/run/run_workers.h"
#include "sim/study/study.h"

namespace hdpsim {

/// What a page shows of one step of every run, taken while the runs are simulated: 8 lanes and no program.
class ShownSteps final : public StepWatcher {
 public:
  void see(const StepTask& task, const Program& program, const Timeline& timeline, const Machine& machine) override;
  /// Empty if the step was not seen.
  [[nodiscard]] std::optional<ShownStep> of(std::size_t run) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::size_t, ShownStep> steps_;  // by run
};

struct StudyReportOptions {
  std::size_t jobs = 1;                                               ///< Threads; files do not depend on them.
  std::function<bool()> stop = [] { return false; };                  ///< Asked before every step, from any thread.
  std::function<void(const std::string&)> note = [](const auto&) {};  ///< Gets notes for the user.
  const Catalog* catalog = nullptr;   ///< With which changed studies are read; null: nothing is advised.
  RunAdvice advice{};                 ///< What the table tells, see advice_in_need().
  const ShownSteps* shown = nullptr;  ///< Of the study's runs; what it lacks is simulated again.
};

/// Writes the files that Study::output asks for: report.html and timelines/*.json.gz, one per run. Runs keep neither
/// plans nor timelines: what nobody saw of a step is simulated once more; the same study gives the same bytes.
/// Does nothing if nothing is asked for. False if it was stopped, with files missing. MachineError if a file cannot be
/// written.
[[nodiscard]] bool write_report(OutputFolder& folder, const Study& study, const std::vector<Run>& runs,
                                std::string_view version, const StudyReportOptions& options = {});

/// The text of report.html, whether the study asks for it or not. Empty if it was stopped.
[[nodiscard]] std::optional<std::string> study_page(const Study& study, const std::vector<Run>& runs,
                                                    std::string_view version, const StudyReportOptions& options = {});

}  // namespace hdpsim
