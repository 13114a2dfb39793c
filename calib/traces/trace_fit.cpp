#include "calib/traces/trace_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "calib/fit/impl/quantities.h"
#include "calib/traces/impl/trace_parts.h"
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

}  // namespace

DeviceProfile fit_to_traces(const Recording& recording, const DeviceProfile& start, const TraceFitOptions& options) {
  return TraceFitter(recording, start, options).run();
}

}  // namespace hdpsim::calib
