#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/analysis/metrics.h"
#include "sim/base/output_folder.h"
#include "sim/base/units.h"
#include "sim/report/study_report.h"
#include "sim/run/process_mail.h"
#include "sim/study/catalog.h"
#include "sim/study/study.h"
#include "sim/tune/tuned_baseline.h"

// What `study` needs besides simulating runs and writing their results. The program that scripts/quickstart builds
// first is made without these parts (study_alone.cpp); where it cannot do without one, it says what builds it.
namespace hdpsim::app {

/// Letters over MPI among the processes of this launch. One that is silent for longer than `patience` counts as lost.
[[nodiscard]] std::unique_ptr<ProcessMail> make_mpi_mail(Duration patience);

/// A study as the user gave it.
struct StudySource {
  const std::string& file;
  std::vector<std::string> overrides;
  const std::vector<std::string>& without;
};

/// Compares the runs of a study that asks for it with its tuned baselines, see compare_with_tuned(). False if it was
/// stopped.
[[nodiscard]] bool compare_with_baselines(const Study& study, const StudySource& source, Catalog& catalog,
                                          const BaselineRun& run, std::vector<Run>& runs);

/// Watches the runs of a study for its report; null if it has none.
[[nodiscard]] std::shared_ptr<ShownSteps> watcher_for_report(const Study& study);

/// Writes the report that a study asks for, see write_report(). False if it was stopped.
[[nodiscard]] bool write_study_report(OutputFolder& folder, const Study& study, const std::vector<Run>& runs,
                                      const StudyReportOptions& options);

}  // namespace hdpsim::app
