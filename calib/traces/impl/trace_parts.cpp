#include "calib/traces/impl/trace_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/model/work.h"
#include "sim/profile/profile_file.h"

namespace hdpsim::calib {
namespace {

constexpr std::int64_t half = 2;  // bytes of the elements that a profile's kernels take

Attention launch_of(const TracedAttention& call) {
  return {.blocks = {{call.queries, call.keys, call.mask, call.count}},
          .heads = call.heads,
          .kv_heads = call.kv_heads,
          .head_dim = call.head_dim,
          .direction = call.direction};
}

/// Adds the samples of one size if they are possible: `least_s` is the time that the data sheet allows.
template <class T, class Op>
void add(Family<T>& family, const KernelSamples& samples, double least_s, double gap_s, const Op& op) {
  if (samples.alone.empty()) {
    ++family.never_alone;
    return;
  }
  if (samples.alone.quantile(0.5) <= least_s) {
    ++family.impossible;
    return;
  }
  T timing = op();
  timing.timing = timing_of(samples.alone, samples.kernels * gap_s);
  family.kernels += samples.alone.count();
  family.timings.push_back(std::move(timing));
}

}  // namespace

Timing timing_of(const SampleSet& samples, double added_s) {
  double squares = 0;
  for (const double sample : samples.kept()) squares += (sample - samples.mean()) * (sample - samples.mean());
  const double deviation = std::sqrt(squares / static_cast<double>(samples.kept().size()));
  return {.median_s = samples.quantile(0.5) + added_s,
          .p10_s = samples.quantile(0.1) + added_s,
          .p90_s = samples.quantile(0.9) + added_s,
          .cv = deviation / (samples.mean() + added_s),
          .runs = samples.count()};
}

Family<GemmTiming> product_samples(const Recording& recording, const Datasheet& device, double gap_s, bool fp8) {
  Family<GemmTiming> family;
  for (const auto& [product, samples] : recording.products) {
    if (is_narrow(product.op.format) != fp8 || (!fp8 && product.element_bytes != half)) continue;
    const Gemm& op = product.op;
    const double speed = fp8 ? narrow_tables.at(narrow_format(op.format).table).speed : 1;
    const double least_s = flops_of(op).count() / (speed * device.peak.per_second());
    add(family, samples, least_s, gap_s, [&op] { return GemmTiming{op, {}}; });
  }
  return family;
}

AttentionKind kind_of(const Attention& op) {
  return {op.blocks.front().mask, op.direction, op.head_dim};
}

Family<AttentionTiming> attention_samples(const Recording& recording, const Datasheet& device, double gap_s) {
  Family<AttentionTiming> family;
  for (const auto& [call, samples] : recording.attention) {
    const Attention launch = launch_of(call);
    const double least_s = flops_of(launch).count() / device.peak.per_second();
    add(family, samples, least_s, gap_s, [&] { return AttentionTiming{launch, {}}; });
  }
  return family;
}

Family<MemoryBoundTiming> traffic_samples(const Recording& recording, const Datasheet& device, double gap_s) {
  constexpr std::int64_t beyond_caches = 256 << 20;
  constexpr double fastest_cache = 10;  // times the memory's bandwidth; an H100's L2 reaches less than two
  const auto bandwidth = static_cast<double>(device.memory_bandwidth.bytes_per_second());
  Family<MemoryBoundTiming> family;
  for (const auto& [traffic, samples] : recording.traffic) {
    const double fastest = traffic.bytes < beyond_caches ? fastest_cache * bandwidth : bandwidth;
    const double least_s = static_cast<double>(traffic.bytes) / fastest;
    add(family, samples, least_s, gap_s, [&traffic = traffic] {
      return MemoryBoundTiming{traffic.kernel, traffic.bytes, {}};
    });
  }
  return family;
}

std::vector<MessageTiming> message_samples(const Recording& recording, LinkKind link, MessageKind kind) {
  constexpr double least_s = 1e-9;  // the clock of a profiler ticks once a nanosecond
  std::vector<MessageTiming> timings;
  for (const auto& [message, samples] : recording.messages) {
    if (message.link != link || message.kind != kind) continue;
    Timing timing = timing_of(samples.of_all_ranks.empty() ? samples.seconds : samples.of_all_ranks, 0);
    timing.median_s = samples.transfer_s();
    timing.p10_s = std::min(timing.p10_s, timing.median_s);
    if (timing.median_s >= least_s) timings.push_back({kind, link, message.ranks, message.bytes, timing});
  }
  return timings;
}

Circumstances circumstances_of(const DeviceProfile& profile) {
  Circumstances device;
  device.device = profile.provenance.device;
  device.multiprocessors = profile.datasheet.multiprocessors;
  device.memory_bytes = profile.datasheet.memory.count();
  device.peak_flops = profile.datasheet.peak.per_second();
  device.memory_bandwidth = static_cast<double>(profile.datasheet.memory_bandwidth.bytes_per_second());
  device.element_bytes = profile.element_bytes;
  if (profile.gemm) {
    device.gemm_tile_m = profile.gemm->tile_m;
    device.gemm_tile_n = profile.gemm->tile_n;
  }
  return device;
}

std::size_t different(std::vector<std::int64_t> sizes) {
  std::sort(sizes.begin(), sizes.end());
  return static_cast<std::size_t>(std::unique(sizes.begin(), sizes.end()) - sizes.begin());
}

double range_of(const std::vector<std::int64_t>& sizes) {
  if (sizes.empty()) return 1;
  const auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
  return static_cast<double>(*most) / static_cast<double>(std::max<std::int64_t>(1, *least));
}

void TraceParts::take(std::string part, std::string how, std::string value, std::int64_t samples, std::size_t sizes,
                      const SampleSet& ratios) {
  record.parts.push_back({.part = std::move(part),
                          .how = std::move(how),
                          .value = std::move(value),
                          .samples = samples,
                          .sizes = static_cast<std::int64_t>(sizes),
                          .p10 = ratios.quantile(0.1),
                          .p90 = ratios.quantile(0.9)});
}

double TraceParts::scaled_by(const std::string& part, const std::vector<double>& ratios, std::int64_t samples,
                             double room) {
  const double factor = std::max(median_of(ratios), 1 / room);
  SampleSet spread;
  for (const double ratio : ratios) spread.add(ratio / factor);
  take(part, "scaled", fmt::format("{:.3g} times the time of {}", factor, start.name), samples, ratios.size(), spread);
  return factor;
}

std::string TraceParts::scaled_source(const std::string& source) const {
  return fmt::format("scaled by one factor {}; before: {}", from_traces,
                     source.empty() ? "measured, " + start.name : source);
}

void TraceParts::state_provenance() {
  record.start = fmt::format("{} ({})", start.name, profile_label_name(start.provenance.label));
  for (const RankRecording& rank : recording.ranks) record.files.push_back({rank.file, rank.kernels});
  record.kernel_s = recording.kernel_s();
  const ClassTime& unknown = recording.classes[static_cast<std::size_t>(KernelClass::unknown)];
  record.unclassified = record.kernel_s > 0 ? unknown.seconds / record.kernel_s : 0;
  Provenance& provenance = result.provenance;
  provenance = {};
  provenance.label = ProfileLabel::traced;
  provenance.source = options.source;
  provenance.device = start.provenance.device;
  provenance.devices = std::ssize(recording.ranks);
  if (!recording.devices.empty()) provenance.device_name = recording.devices.front().name;
  provenance.nccl = recording.nccl;
  provenance.traces = std::move(record);
}

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace hdpsim::calib
