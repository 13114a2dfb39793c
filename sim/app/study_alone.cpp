#include "sim/app/command.h"
#include "sim/app/study_parts.h"
#include "sim/base/check.h"

namespace hdpsim::app {
namespace {

[[noreturn]] void refuse() {
  throw MachineError(
      "this program was built for a first table alone\n"
      "        ./scripts/build builds all of it");
}

}  // namespace

// The program that `scripts/quickstart` builds first.
void add_commands(Command app, Session& session) {
  add_study_command(app, session);
}

std::unique_ptr<ProcessMail> make_mpi_mail(Duration /*patience*/) {
  refuse();
}

bool compare_with_baselines(const Study& /*study*/, const StudySource& /*source*/, Catalog& /*catalog*/,
                            const BaselineRun& /*run*/, std::vector<Run>& /*runs*/) {
  refuse();
}

// The whole program writes it, with --resume.
std::shared_ptr<ShownSteps> watcher_for_report(const Study& /*study*/) {
  return nullptr;
}

bool write_study_report(OutputFolder& /*folder*/, const Study& /*study*/, const std::vector<Run>& /*runs*/,
                        const StudyReportOptions& /*options*/) {
  return true;
}

}  // namespace hdpsim::app
