#include "calib/traces/trace_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "calib/fit/impl/linear_fits.h"
#include "calib/traces/impl/trace_parts.h"
#include "sim/base/printable.h"
#include "sim/base/quantity_text.h"

namespace hdpsim::calib {
namespace {

constexpr std::int64_t enough_for_slowdown = 3;

class TraceFitter {
 public:
  TraceFitter(const Recording& recording, const DeviceProfile& start, const TraceFitOptions& options)
      : parts_{.recording = recording, .start = start, .options = options, .result = start} {}

  DeviceProfile run() {
    kernel_gap();
    host_issue();
    take_kernels(parts_);
    copies();
    slowdown();
    take_messages(parts_);
    for (const char* part : {"per_step", "per_micro_batch", "connections", "backward_ring"}) {
      parts_.keep(part, "a trace of kernels does not tell it");
    }
    parts_.state_provenance();
    return std::move(parts_.result);
  }

 private:
  // A time that is the median, or the mean, of its samples.
  void take_time(const char* part, const SampleSet& samples, double seconds) {
    SampleSet ratios;
    for (const double sample : samples.kept()) ratios.add(seconds > 0 ? sample / seconds : 1);
    parts_.take(part, "fitted", seconds_text(seconds), samples.count(), 1, ratios);
  }

  void kernel_gap() {
    if (parts_.recording.gaps.empty()) {
      return parts_.keep("kernel_launch", "no kernel is known to have waited for nothing but the one before it");
    }
    parts_.gap_s = parts_.recording.gaps.quantile(0.5);
    parts_.result.overheads.kernel_launch = {Duration::seconds(parts_.gap_s), from_traces};
    take_time("kernel_launch", parts_.recording.gaps, parts_.gap_s);
  }

  void host_issue() {
    if (parts_.recording.issues.empty())
      return parts_.keep("host_issue", "the traces have no launches of kernels by the host");
    if (parts_.recording.graphs > 0) return parts_.keep("host_issue", "CUDA graphs launched the kernels");
    const double mean = parts_.recording.issues.mean();
    parts_.result.overheads.host_issue = Overhead{Duration::seconds(mean), from_traces};
    take_time("host_issue", parts_.recording.issues, mean);
  }

  void copies() {
    bool any = false;
    for (const CopyKind kind : {CopyKind::d2h, CopyKind::h2d}) any = copies_of(kind) || any;
    if (!any)
      parts_.keep("host_copies",
                  parts_.start.host_copies ? "no copies of pinned memory of 1 MB or more went alone" : "it has none");
  }

  bool copies_of(CopyKind kind) {
    constexpr std::int64_t large = 1'000'000;
    if (!parts_.result.host_copies) return false;
    std::vector<double> byte_s;
    std::int64_t samples = 0;
    for (const auto& [copy, seconds] : parts_.recording.copies) {
      if (copy.kind != kind || copy.bytes < large) continue;
      const double beyond = seconds.quantile(0.5) + parts_.gap_s - parts_.result.host_copies->latency.seconds();
      byte_s.push_back(std::max(beyond, seconds.quantile(0.5) / 2) / static_cast<double>(copy.bytes));
      samples += seconds.count();
    }
    if (byte_s.empty()) return false;
    const double typical = median_of(byte_s);
    Bandwidth& alone = kind == CopyKind::d2h ? parts_.result.host_copies->d2h : parts_.result.host_copies->h2d;
    Bandwidth& both = kind == CopyKind::d2h ? parts_.result.host_copies->d2h_both : parts_.result.host_copies->h2d_both;
    alone = bandwidth_of(typical);
    both = std::min(both, alone);
    parts_.result.host_copies->source =
        fmt::format("{}: bandwidth of copies alone; the rest: {}", from_traces, parts_.start.host_copies->source);
    SampleSet ratios;
    for (const double cost : byte_s) ratios.add(cost / typical);
    parts_.take(kind == CopyKind::d2h ? "host_copies d2h" : "host_copies h2d", "fitted",
                fmt::format("{:.4g} GB/s", alone.gigabytes_per_second()), samples, byte_s.size(), ratios);
    return true;
  }

  void slowdown() {
    SampleSet ratios;
    double weighted = 0;
    double weight = 0;
    std::int64_t samples = 0;
    const auto add = [&](const auto& shapes) {
      for (const auto& [shape, own] : shapes) {
        if (own.alone.count() < enough_for_slowdown || own.overlapped.count() < enough_for_slowdown) continue;
        const double ratio = own.overlapped.quantile(0.5) / own.alone.quantile(0.5);
        const double seconds = own.overlapped.mean() * static_cast<double>(own.overlapped.count());
        ratios.add(ratio);
        weighted += seconds * ratio;
        weight += seconds;
        samples += own.overlapped.count();
      }
    };
    add(parts_.recording.products);
    add(parts_.recording.attention);
    add(parts_.recording.traffic);
    if (weight == 0) {
      return parts_.keep("compute_beside_communication",
                         "no shape of kernel ran three times alone and three times while messages ran");
    }
    const double factor = std::max(1.0, weighted / weight);
    parts_.result.overheads.compute_beside_communication = Slowdown{factor, from_traces};
    SampleSet spread;
    for (const double ratio : ratios.kept()) spread.add(ratio / factor);
    parts_.take("compute_beside_communication", "fitted", fmt::format("factor {:.3f}", factor), samples,
                static_cast<std::size_t>(ratios.count()), spread);
  }

  TraceParts parts_;
};

constexpr double percent = 100;
constexpr std::size_t most_words = 24;
constexpr std::size_t most_names = 5;
constexpr std::size_t longest_name = 90;

using Times = std::vector<std::pair<std::string, ClassTime>>;

template <class Map>
Times largest(const Map& times, std::size_t most) {
  Times sorted(times.begin(), times.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
  if (sorted.size() > most) sorted.resize(most);
  return sorted;
}

std::string head(const Recording& recording) {
  std::string text;
  for (const ProfiledDevice& device : recording.devices) {
    text += (text.empty() ? "" : "; ") + printable(device.name);
    if (device.multiprocessors > 0) text += fmt::format(", {} multiprocessors", device.multiprocessors);
  }
  std::int64_t kernels = 0;
  for (const RankRecording& rank : recording.ranks) kernels += rank.kernels;
  return fmt::format("{}\n{} {}, {} kernels, {} of kernel time\n", text.empty() ? "the traces name no device" : text,
                     recording.ranks.size(), recording.ranks.size() == 1 ? "trace" : "traces", kernels,
                     seconds_text(recording.kernel_s()));
}

std::string row(const std::string& name, const ClassTime& time, double all) {
  return fmt::format("{:<34} {:>9} {:>10} {:>7.1f} % {:>11.1f} %\n", name, time.kernels, seconds_text(time.seconds),
                     percent * time.seconds / all, time.seconds > 0 ? percent * time.with_shape_s / time.seconds : 0);
}

std::string classes(const Recording& recording) {
  const double all = std::max(recording.kernel_s(), 1e-12);
  std::string text =
      fmt::format("\n{:<34} {:>9} {:>10} {:>9} {:>13}\n", "time by class", "kernels", "time", "share", "of known size");
  const Times words = largest(recording.words, most_words);
  for (std::size_t i = 0; i < kernel_classes; ++i) {
    const ClassTime& time = recording.classes[i];
    if (time.kernels == 0) continue;
    const std::string name(kernel_class_name(static_cast<KernelClass>(i)));
    text += row(name, time, all);
    for (const auto& [word, own] : words) {
      if (word.starts_with(name + ": ")) text += row("  " + word.substr(name.size() + 2), own, all);
    }
  }
  return text;
}

std::string unclassified(const Recording& recording, const TraceRecord& record) {
  std::string text = fmt::format("\nunclassified: {:.1f} % of kernel time", percent * record.unclassified);
  for (const auto& [name, time] : largest(recording.unclassified, most_names)) {
    std::string shown = printable(name);
    if (shown.size() > longest_name) shown = shown.substr(0, longest_name) + "...";
    text += fmt::format("\n  {:.1f} % {}", percent * time.seconds / recording.kernel_s(), shown);
  }
  return text + "\n";
}

std::string taken(const TraceRecord& record, std::string_view from) {
  if (record.parts.empty()) return fmt::format("\nnothing of the profile comes {}\n", from);
  std::string text = fmt::format("\n{:<32} {:<7} {:>8} {:>6}  {:<17} {}\n", from, "how", "samples", "sizes",
                                 "measured/predicted", "value");
  for (const TracedPart& part : record.parts) {
    text += fmt::format("{:<32} {:<7} {:>8} {:>6}  {:<18} {}\n", part.part, part.how, part.samples, part.sizes,
                        fmt::format("{:.3f} to {:.3f}", part.p10, part.p90), part.value);
  }
  return text + "measured/predicted: deciles 1 and 9, over sizes where there are several, which a fit has not seen\n";
}

std::string kept(const TraceRecord& record) {
  std::string text = fmt::format("\nkept of {}\n", record.start);
  std::vector<std::pair<std::string, std::string>> reasons;  // and the parts, in the order of the record
  for (const KeptPart& part : record.kept) {
    const auto known =
        std::find_if(reasons.begin(), reasons.end(), [&](const auto& reason) { return reason.first == part.why; });
    if (known == reasons.end()) {
      reasons.emplace_back(part.why, part.part);
    } else {
      known->second += ", " + part.part;
    }
  }
  for (const auto& [why, parts] : reasons) text += fmt::format("  {}\n    {}\n", parts, why);
  return text;
}

}  // namespace

DeviceProfile fit_to_traces(const Recording& recording, const DeviceProfile& start, const TraceFitOptions& options) {
  return TraceFitter(recording, start, options).run();
}

DeviceProfile fit_to_messages(const MeasuredMessages& messages, const DeviceProfile& start,
                              const TraceFitOptions& options) {
  Recording recording;
  recording.nccl = messages.nccl;
  std::int64_t devices = 1;
  for (const MessageTiming& timing : messages.timings) {
    MessageSamples& samples = recording.messages[{timing.kind, timing.ranks, timing.bytes, timing.link}];
    samples.seconds.add(timing.timing.median_s);
    samples.of_all_ranks.add(timing.timing.median_s);
    devices = std::max(devices, timing.ranks);
  }
  for (const TracedFile& each : messages.files) {
    RankRecording& rank = recording.ranks.emplace_back();
    rank.file = each.file;
    rank.kernels = each.kernels;
  }
  TraceParts parts{.recording = recording, .start = start, .options = options, .result = start, .timed_alone = true};
  take_messages(parts);
  parts.keep("all other parts", "nccl-tests measures messages alone");
  parts.state_provenance();
  parts.result.provenance.devices = devices;
  return std::move(parts.result);
}

std::string trace_report(const Recording& recording, const DeviceProfile& profile) {
  const TraceRecord& record = *profile.provenance.traces;
  return head(recording) + classes(recording) + unclassified(recording, record) +
         parts_report(record, "from the traces");
}

std::string parts_report(const TraceRecord& record, std::string_view from) {
  return taken(record, from) + kept(record);
}

}  // namespace hdpsim::calib
