#include "sim/app/from_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "calib/traces/trace_fit.h"
#include "calib/traces/trace_report.h"
#include "sim/app/named_cluster.h"
#include "sim/app/progress.h"
#include "sim/base/atomic_file.h"
#include "sim/base/text.h"
#include "sim/cluster/cluster_config.h"
#include "sim/document/document.h"
#include "sim/document/json_stream.h"
#include "sim/profile/profile_file.h"
#include "sim/profile/renamed_profiles.h"
#include "sim/profiler/recording.h"
#include "sim/study/catalog.h"
#include "sim/study/profile_choice.h"
#include "sim/study/study_paths.h"

namespace hdpsim::app {
namespace {

namespace fs = std::filesystem;

using Profile = std::shared_ptr<const DeviceProfile>;

/// What --like says: a profile to start from, and the GPUs of a node if it is a cluster.
struct Start {
  Profile profile;
  std::optional<std::int64_t> gpus_per_node;
};

bool is_profile(const std::string& name, const Catalog& catalog) {
  const std::vector<std::string> shipped = profile_names(catalog.profiles().string());
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

Profile named_profile(const std::string& name, Catalog& catalog) {
  Diagnostics diagnostics;
  Profile profile = catalog.profile(Value::scalar(name, {"--like", 0, 0}), diagnostics);
  diagnostics.throw_if_any();
  if (const std::string renamed = renamed_profile_note(name); !renamed.empty()) note(renamed);
  return profile;
}

std::optional<Start> start_like(const std::string& name, Catalog& catalog) {
  if (name.empty()) return std::nullopt;
  if (is_profile(name, catalog)) return Start{named_profile(name, catalog), std::nullopt};
  const std::vector<std::string> clusters = cluster_preset_names(catalog.clusters());
  const bool is_cluster = std::find(clusters.begin(), clusters.end(), name) != clusters.end();
  std::error_code refused;
  if (!is_cluster && !fs::exists(name, refused)) {
    std::vector<std::string> known = profile_names(catalog.profiles().string());
    known.insert(known.end(), clusters.begin(), clusters.end());
    throw InputError(fmt::format("--like {}: there is no such cluster or profile", name), suggestion(name, known));
  }
  const ClusterSpec cluster = named_cluster(name, std::nullopt, catalog);
  Diagnostics diagnostics;
  const Position asked{"--like", 0, 0};
  Profile profile = profile_of_device(cluster.device, asked, catalog, diagnostics);
  if (profile == nullptr) {
    throw InputError(fmt::format("--like {}: no single shipped profile is of a {}", name, cluster.device),
                     "name a profile in place of the cluster");
  }
  return Start{std::move(profile), cluster.devices_per_node};
}

/// "H100" of "H100-80GB".
std::string model_of(const std::string& device) {
  return device.substr(0, device.find('-'));
}

bool is_of(const DeviceProfile& profile, const ProfiledDevice& device) {
  if (!profile.provenance.implied_by.empty()) return false;
  return device.name.find(model_of(profile.provenance.device)) != std::string::npos;
}

/// The shipped profile of the traced device.
Profile shipped_profile(const Recording& recording, Catalog& catalog) {
  const std::vector<std::string> names = profile_names(catalog.profiles().string());
  if (recording.devices.empty()) {
    throw InputError("the traces do not say which device they are of ('deviceProperties')",
                     fmt::format("say --like and one of {}", joined(names, ", ")));
  }
  std::vector<std::string> suitable;
  for (const std::string& name : names) {
    if (is_of(*named_profile(name, catalog), recording.devices.front())) suitable.push_back(name);
  }
  if (suitable.size() == 1) return named_profile(suitable.front(), catalog);
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

void require_file(const std::string& out) {
  if (out.empty()) return;
  const fs::path extension = fs::path(out).extension();
  if (extension == ".yaml" || extension == ".yml") return;
  throw InputError(fmt::format("--out {}: the profile is a file", out), "write --out traced.yaml");
}

Recording read_traces(const FromTraceOptions& options, const std::optional<Start>& start) {
  RecordingOptions reading;
  if (start) reading.gpus_per_node = start->gpus_per_node;
  if (options.gpus_per_node > 0) reading.gpus_per_node = options.gpus_per_node;
  ProgressDisplay display;
  reading.tell = [&display](double share) { display.show(ReadingProgress{share}); };
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
  require_file(out);
  Catalog catalog(session.data_folder);
  std::optional<Start> start = start_like(like, catalog);
  const Recording recording = read_traces(options, start);
  const Profile from = start ? start->profile : shipped_profile(recording, catalog);
  tell_other_device(recording, *from);
  const DeviceProfile profile =
      calib::fit_to_traces(recording, *from, {.source = fmt::format("hdpsim {}: {}", version, session.command_line)});
  print(calib::trace_report(recording, profile));
  if (out.empty()) return 0;
  session.inputs.require_none_at(out);
  prepare_folder(fs::path(out).has_parent_path() ? fs::path(out).parent_path() : fs::path("."));
  remove_left_overs(out);
  write_file(out, profile_text(profile));
  note(fmt::format("the profile is in {}", out));
  return 0;
}

}  // namespace hdpsim::app
