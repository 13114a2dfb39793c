#include "sim/app/from_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "calib/traces/trace_fit.h"
#include "sim/app/fitted_output.h"
#include "sim/app/progress.h"
#include "sim/app/start_profile.h"
#include "sim/app/terminal.h"
#include "sim/base/text.h"
#include "sim/document/json_stream.h"
#include "sim/profiler/recording.h"
#include "sim/study/catalog.h"

namespace hdpsim::app {
namespace {

/// "H100" of "H100-80GB".
std::string model_of(const std::string& device) {
  return device.substr(0, device.find('-'));
}

bool is_of(const DeviceProfile& profile, const ProfiledDevice& device) {
  if (!profile.provenance.implied_by.empty()) return false;
  return device.name.find(model_of(profile.provenance.device)) != std::string::npos;
}

// Whether the name has the memory, too, that the profile's device has: "H100-80GB" and "NVIDIA H100 80GB HBM3".
bool has_memory_of(const DeviceProfile& profile, const ProfiledDevice& device) {
  const std::string& name = profile.provenance.device;
  return device.name.find(name.substr(name.find('-') + 1)) != std::string::npos;
}

/// The shipped profile of the traced device.
ProfilePtr shipped_profile(const Recording& recording, Catalog& catalog) {
  const std::vector<std::string> names = shipped_profile_names(catalog);
  if (recording.devices.empty()) {
    throw InputError("the traces do not say which device they are of ('deviceProperties')",
                     fmt::format("say --like and one of {}", joined(names, ", ")));
  }
  std::vector<std::string> suitable;
  std::vector<std::string> closest;
  for (const std::string& name : names) {
    const ProfilePtr profile = start_profile(name, catalog);
    if (!is_of(*profile, recording.devices.front())) continue;
    suitable.push_back(name);
    if (has_memory_of(*profile, recording.devices.front())) closest.push_back(name);
  }
  if (suitable.size() > 1 && !closest.empty()) suitable = closest;
  if (suitable.size() == 1) return start_profile(suitable.front(), catalog);
  throw InputError(fmt::format("{} shipped profiles are of a {}", suitable.empty() ? "no" : "several",
                               recording.devices.front().name),
                   fmt::format("say --like and one of {}", joined(suitable.empty() ? names : suitable, ", ")));
}

void tell_other_device(const Recording& recording, const DeviceProfile& start) {
  for (const ProfiledDevice& device : recording.devices) {
    if (is_of(start, device)) continue;
    note(fmt::format("the traces are of a {}, and {} is of a {}: its data sheet and what is kept of it are another's",
                     device.name, start.name, start.provenance.device));
  }
}

Recording read_traces(const FromTraceOptions& options, const std::optional<StartProfile>& start) {
  RecordingOptions reading;
  if (start) reading.gpus_per_node = start->gpus_per_node;
  if (options.gpus_per_node > 0) reading.gpus_per_node = options.gpus_per_node;
  ProgressDisplay display;
  reading.report = [&display](double share) { display.show(ReadingProgress{share}); };
  return read_recording({options.traces.begin(), options.traces.end()}, reading);
}

}  // namespace

void add_from_trace(Command command, FromTraceOptions& options) {
  const Option from =
      command
          .add_option(
              "--from-trace", options.traces,
              "Measure nothing: fit a profile to traces of PyTorch's profiler (.json, .json.gz), one of each rank, "
              "or of Nsight Systems (cuda_gpu_trace, .csv)")
          .type_name("TRACE...");
  add_count(command, "--gpus-per-node", options.gpus_per_node,
            "GPUs of a node of the traced cluster (default: as --like or the trace says)")
      .needs(from);
}

int calibrate_from_trace(const FromTraceOptions& options, const std::string& like, const std::string& out,
                         const Session& session) {
  const FittedOutput output(out, session);
  Catalog catalog(session.data_folder);
  std::optional<StartProfile> start = start_like(like, catalog);
  const Recording recording = read_traces(options, start);
  const ProfilePtr from = start ? start->profile : shipped_profile(recording, catalog);
  tell_other_device(recording, *from);
  const DeviceProfile profile =
      calib::fit_to_traces(recording, *from, {.source = fmt::format("hdpsim {}: {}", version, session.command_line)});
  print(calib::trace_report(recording, profile));
  output.write(profile);
  return 0;
}

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
