#include "sim/profiler/recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <system_error>
#include <utility>

#include "sim/base/check.h"
#include "sim/document/compression.h"
#include "sim/profiler/impl/host_recording.h"
#include "sim/profiler/impl/rank_trace.h"
#include "sim/profiler/profiler_readers.h"

namespace hdpsim {
namespace {

void add_header(ProfilerHeader header, Recording& recording) {
  for (ProfiledDevice& device : header.devices) {
    const auto known = std::find(recording.devices.begin(), recording.devices.end(), device);
    if (known == recording.devices.end()) recording.devices.push_back(std::move(device));
  }
  if (recording.nccl.empty()) recording.nccl = std::move(header.nccl);
}

/// The messages of one group: each collective takes its fastest rank's time, the others' have waited for it, where all
/// ranks have a trace with as many.
void add_group(const TracedMessage& message, const std::vector<std::vector<float>>& ranks, MessageSamples& samples) {
  for (const std::vector<float>& rank : ranks) {
    for (const float seconds : rank) samples.seconds.add(seconds);
  }
  const bool all =
      message.kind != MessageKind::send_recv && std::ssize(ranks) == message.ranks &&
      std::all_of(ranks.begin(), ranks.end(), [&](const auto& rank) { return rank.size() == ranks[0].size(); });
  if (!all) return;
  for (std::size_t i = 0; i < ranks[0].size(); ++i) {
    float least = ranks[0][i];
    for (const std::vector<float>& rank : ranks) least = std::min(least, rank[i]);
    samples.of_all_ranks.add(least);
  }
}

// By its name: x.csv, also compressed. Databases of Nsight Systems have to be exported.
bool is_nsys(const std::filesystem::path& file) {
  const std::string name = file.filename().string();
  if (name.ends_with(".sqlite") || name.ends_with(".nsys-rep")) {
    throw InputError(Position{file.string(), 0, 0}, "files of Nsight Systems are read as CSV",
                     fmt::format("nsys stats --report cuda_gpu_trace --format csv {} > trace.csv", name));
  }
  return (compression_of(file) != nullptr ? file.stem().extension() : file.extension()) == ".csv";
}

// A trace that is given twice would count as two ranks that always agree.
void require_different(const std::vector<std::filesystem::path>& files) {
  std::set<std::filesystem::path> seen;
  for (const std::filesystem::path& file : files) {
    std::error_code unknown;
    if (!std::filesystem::exists(file, unknown)) continue;  // its reader reports that
    const std::filesystem::path where = std::filesystem::weakly_canonical(file, unknown);
    if (seen.insert(unknown ? file : where).second) continue;
    throw InputError(Position{file.string(), 0, 0}, "this trace is given twice", "give one trace of each rank");
  }
}

}  // namespace

void SampleSet::add(double sample) {
  sum_ += sample;
  if (count_++ % every_ != 0) return;
  if (kept_.size() == most) {
    for (std::size_t i = 0; 2 * i < most; ++i) kept_[i] = kept_[2 * i];
    kept_.resize(most / 2);
    every_ *= 2;
    if ((count_ - 1) % every_ != 0) return;
  }
  kept_.push_back(sample);
}

double SampleSet::mean() const {
  return count_ == 0 ? 0 : sum_ / static_cast<double>(count_);
}

double SampleSet::quantile(double share) const {
  HDPSIM_CHECK(!kept_.empty(), "a quantile of nothing");
  std::vector<double> sorted = kept_;
  std::sort(sorted.begin(), sorted.end());
  const double at = std::clamp(share, 0.0, 1.0) * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(at));
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

double MessageSamples::transfer_s() const {
  constexpr double waiting = 1.2;
  if (!of_all_ranks.empty()) return of_all_ranks.quantile(0.5);
  const double first = seconds.quantile(0.1);
  return seconds.quantile(0.9) > waiting * first ? first : seconds.quantile(0.5);
}

std::string_view device_activity_name(DeviceActivity activity) {
  constexpr std::array<std::string_view, device_activities> names = {"attention forward",
                                                                     "attention backward",
                                                                     "products",
                                                                     "memory-bound",
                                                                     "unclassified",
                                                                     "send/recv",
                                                                     "all-reduce",
                                                                     "all-gather",
                                                                     "reduce-scatter",
                                                                     "all-to-all",
                                                                     "other messages",
                                                                     "copies",
                                                                     "idle"};
  return names.at(static_cast<std::size_t>(activity));
}

double Recording::kernel_s() const {
  double sum = 0;
  for (const ClassTime& time : classes) sum += time.seconds;
  return sum;
}

Recording read_recording(const std::vector<std::filesystem::path>& files, const RecordingOptions& options) {
  require_different(files);
  Recording recording;
  MessagesOfGroups groups;
  const auto all = static_cast<double>(files.size());
  for (std::size_t i = 0; i < files.size(); ++i) {
    RankTrace trace;
    const auto read = is_nsys(files[i]) ? read_nsys : read_kineto;
    ProfilerHeader header = read(
        files[i], [&](ProfilerEvent& event) { trace.add(event); },
        [&](double share) { options.report((static_cast<double>(i) + share) / all); });
    if (trace.kernels.empty() && options.counts_operators && header.schema.empty()) {
      if (std::optional<RankRecording> host = recording_of_host(files[i])) {
        recording.ranks.push_back(std::move(*host));
        continue;
      }
    }
    if (trace.kernels.empty()) {
      throw InputError(Position{files[i].string(), 0, 0},
                       header.schema.empty() ? "the trace has no kernels of a GPU" : "this trace is of hdpsim itself",
                       "record with torch.profiler and ProfilerActivity.CUDA");
    }
    const std::int64_t listed = std::ssize(header.devices);
    add_header(std::move(header), recording);
    analyse(trace, files[i].string(), options.gpus_per_node.value_or(listed), recording, groups);
  }
  for (const auto& [key, ranks] : groups) add_group(key.first, ranks, recording.messages[key.first]);
  return recording;
}

}  // namespace hdpsim
