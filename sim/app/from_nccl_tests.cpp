#include "sim/app/from_nccl_tests.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "calib/traces/trace_fit.h"
#include "sim/app/fitted_output.h"
#include "sim/app/start_profile.h"

namespace hdpsim::app {

void add_nccl_tests(Command command, std::vector<std::string>& files) {
  command
      .add_option("--nccl-tests", files,
                  "Take messages from what nccl-tests has printed (text, or JSON of -J); may be given several times. "
                  "With --like nothing is measured, and all else is that profile's")
      .type_name("FILE")
      .one_at_a_time();
}

std::vector<calib::NcclTestsRun> read_nccl_tests_files(const std::vector<std::string>& files) {
  Diagnostics diagnostics;
  std::vector<calib::NcclTestsRun> runs;
  for (const std::string& file : files) {
    for (calib::NcclTestsRun& run : calib::read_nccl_tests(file, diagnostics)) runs.push_back(std::move(run));
  }
  diagnostics.throw_if_any();
  return runs;
}

int calibrate_from_nccl_tests(const std::vector<std::string>& files, const std::string& like, const std::string& out,
                              const Session& session) {
  Catalog catalog(session.data_folder);
  const std::optional<StartProfile> start = start_like(like, catalog);
  calib::MeasuredMessages messages;
  Diagnostics diagnostics;
  for (const std::string& file : files) {
    TracedFile& traced = messages.files.emplace_back(TracedFile{file, 0});
    for (const calib::NcclTestsRun& run : calib::read_nccl_tests(file, diagnostics)) {
      messages.timings.insert(messages.timings.end(), run.timings.begin(), run.timings.end());
      traced.kernels += std::ssize(run.timings);
      if (!run.nccl.empty()) messages.nccl = run.nccl;
    }
  }
  diagnostics.throw_if_any();
  const FittedOutput output(out, session);
  const DeviceProfile profile = calib::fit_to_messages(
      messages, *start->profile, {.source = fmt::format("hdpsim {}: {}", version, session.command_line)});
  print(calib::parts_report(*profile.provenance.traces, "from nccl-tests"));
  output.write(profile);
  return 0;
}

}  // namespace hdpsim::app
