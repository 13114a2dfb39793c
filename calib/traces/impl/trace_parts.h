#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "calib/fit/samples.h"
#include "calib/traces/trace_fit.h"
#include "sim/profile/device_profile.h"
#include "sim/profiler/recording.h"

namespace hdpsim::calib {

/// The spread of samples as a calibration states it; each takes `added_s` more.
[[nodiscard]] Timing timing_of(const SampleSet& samples, double added_s);

/// Samples of one family, and what was omitted from it.
template <class T>
struct Family {
  std::vector<T> timings;
  std::int64_t kernels = 0;      ///< Behind them.
  std::int64_t impossible = 0;   ///< Sizes that were faster than the data sheet allows.
  std::int64_t never_alone = 0;  ///< Sizes of which every kernel overlapped with others.
};

/// Products in bf16 or fp16, or in fp8.
[[nodiscard]] Family<GemmTiming> product_samples(const Recording& recording, const Datasheet& device, double gap_s,
                                                 bool fp8);

/// Mask, direction and head dimension of attention.
using AttentionKind = std::tuple<Mask, Direction, std::int64_t>;
[[nodiscard]] AttentionKind kind_of(const Attention& op);
[[nodiscard]] Family<AttentionTiming> attention_samples(const Recording& recording, const Datasheet& device,
                                                        double gap_s);

[[nodiscard]] Family<MemoryBoundTiming> traffic_samples(const Recording& recording, const Datasheet& device,
                                                        double gap_s);

/// Messages and collectives over one kind of link.
[[nodiscard]] std::vector<MessageTiming> message_samples(const Recording& recording, LinkKind link, MessageKind kind);

/// What a fit has to know of the device: that of the profile, with its tiles of products.
[[nodiscard]] Circumstances circumstances_of(const DeviceProfile& profile);

/// How many different sizes there are.
[[nodiscard]] std::size_t different(std::vector<std::int64_t> sizes);
/// The largest over the smallest of some sizes; 1 for none.
[[nodiscard]] double range_of(const std::vector<std::int64_t>& sizes);

/// The source of a figure that traces determined.
inline constexpr char from_traces[] = "from traces (see provenance)";

/// A fit to traces under way: the profile so far, and the record of what came from where.
struct TraceParts {
  const Recording& recording;
  const DeviceProfile& start;
  const TraceFitOptions& options;
  DeviceProfile result;
  TraceRecord record = {};
  double gap_s = 0;          ///< From a kernel to the next one of its stream.
  bool timed_alone = false;  ///< Messages were timed by themselves, in no training.

  void keep(std::string part, std::string why) { record.kept.push_back({std::move(part), std::move(why)}); }
  /// Records what traces determined; `ratios` are measured / predicted, at least one.
  void take(std::string part, std::string how, std::string value, std::int64_t samples, std::size_t sizes,
            const SampleSet& ratios);
  /// Records a part that takes one factor, and returns it: the median of the ratios, but no rate beyond `room` times.
  double scaled_by(const std::string& part, const std::vector<double>& ratios, std::int64_t samples, double room);
  [[nodiscard]] std::string scaled_source(const std::string& source) const;
  /// Writes the finished record into the result's provenance.
  void state_provenance();
};

/// The median of at least one value.
[[nodiscard]] double median_of(std::vector<double> values);

/// Products, attention and element-wise kernels.
void take_kernels(TraceParts& parts);
/// Messages and collectives within nodes and between them.
void take_messages(TraceParts& parts);

}  // namespace hdpsim::calib
