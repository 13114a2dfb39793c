#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include "calib/fit/samples.h"
#include "sim/profile/device_profile.h"
#include "sim/profiler/recording.h"

namespace hdpsim::calib {

/// The spread of samples as a calibration states it; each takes `added_s` more.
[[nodiscard]] Timing timing_of(const SampleSet& samples, double added_s);

/// Samples of one family, and what was left out of it.
template <class T>
struct Family {
  std::vector<T> timings;
  std::int64_t kernels = 0;      ///< Behind them.
  std::int64_t impossible = 0;   ///< Sizes that were faster than the data sheet allows.
  std::int64_t never_alone = 0;  ///< Sizes of which every kernel ran beside others.
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

}  // namespace hdpsim::calib
