#include "calib/traces/impl/trace_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/profile/profile_file.h"

namespace hdpsim::calib {

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
