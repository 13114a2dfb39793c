#include "sim/app/from_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "calib/traces/trace_fit.h"
#include "sim/app/fitted_output.h"
#include "sim/app/named_cluster.h"
#include "sim/app/progress.h"
#include "sim/app/terminal.h"
#include "sim/base/text.h"
#include "sim/cluster/cluster_config.h"
#include "sim/document/json_stream.h"
#include "sim/profile/profile_file.h"
#include "sim/profile/renamed_profiles.h"
#include "sim/profiler/recording.h"
#include "sim/study/catalog.h"

namespace hdpsim::app {
namespace {

namespace fs = std::filesystem;

using ProfilePtr = std::shared_ptr<const DeviceProfile>;

/// What --like says: a profile to start from, and the GPUs of a node if it is a cluster.
struct StartProfile {
  ProfilePtr profile;
  std::optional<std::int64_t> gpus_per_node;
};

std::vector<std::string> shipped_profile_names(const Catalog& catalog) {
  return profile_names(catalog.profiles().string());
}

bool is_profile(const std::string& name, const Catalog& catalog) {
  const std::vector<std::string> shipped = shipped_profile_names(catalog);
  if (std::find(shipped.begin(), shipped.end(), name) != shipped.end() || find_renamed_profile(name) != nullptr) {
    return true;
  }
  std::error_code refused;
  if (!fs::is_regular_file(name, refused)) return false;
  Diagnostics ignored;
  const Value outline = load_outline(name, ignored);
  const Value* schema = outline.find("schema");
  return schema != nullptr && schema->text == "hdpsim.profile/1";
}

// A profile by its name or file. InputError with every problem of it.
ProfilePtr named_start(const std::string& name, Catalog& catalog) {
  Diagnostics diagnostics;
  ProfilePtr profile = catalog.profile(Value::scalar(name, {"--like", 0, 0}), diagnostics);
  diagnostics.throw_if_any();
  if (const std::string renamed = renamed_profile_note(name); !renamed.empty()) note(renamed);
  return profile;
}

// The start that `name` is or has: a profile, shipped or a file, or a cluster, whose device's profile it then is.
// Empty for an empty name. InputError if there is none.
std::optional<StartProfile> start_like(const std::string& name, Catalog& catalog) {
  if (name.empty()) return std::nullopt;
  if (is_profile(name, catalog)) return StartProfile{named_start(name, catalog), std::nullopt};
  const std::vector<std::string> clusters = cluster_preset_names(catalog.clusters());
  const bool is_cluster = std::find(clusters.begin(), clusters.end(), name) != clusters.end();
  std::error_code refused;
  if (!is_cluster && !fs::exists(name, refused)) {
    std::vector<std::string> known = shipped_profile_names(catalog);
    known.insert(known.end(), clusters.begin(), clusters.end());
    throw InputError(fmt::format("--like {}: there is no such cluster or profile", name), suggestion(name, known));
  }
  const ClusterSpec cluster = named_cluster(name, std::nullopt, catalog);
  Diagnostics diagnostics;
  const Position asked{"--like", 0, 0};
  ProfilePtr profile = profile_of_device(cluster.device, asked, catalog, diagnostics);
  if (profile == nullptr) {
    throw InputError(fmt::format("--like {}: no single shipped profile is of a {}", name, cluster.device),
                     "name a profile in place of the cluster");
  }
  return StartProfile{std::move(profile), cluster.devices_per_node};
}

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
    const ProfilePtr profile = named_start(name, catalog);
    if (!is_of(*profile, recording.devices.front())) continue;
    suitable.push_back(name);
    if (has_memory_of(*profile, recording.devices.front())) closest.push_back(name);
  }
  if (suitable.size() > 1 && !closest.empty()) suitable = closest;
  if (suitable.size() == 1) return named_start(suitable.front(), catalog);
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
