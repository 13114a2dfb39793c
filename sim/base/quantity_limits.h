#pragma once

#include <cstdint>

#include "sim/base/units.h"

namespace hdpsim {

/// Inclusive limits of a quantity with a unit.
template <class T>
struct Between {
  T least;
  T most;
};

/// What files may state of quantities that stand in many of them, far beyond all that is built, and still so that sums
/// and products of what a step needs stay within 64 bits, or are refused as longer than a simulated step can be.
namespace limits {

/// Of a link, a storage or a memory: from a tenth of 10 Mbit/s Ethernet. What an efficiency, an oversubscription and a
/// share, each at its least, leave of the least is more than nothing.
inline constexpr Between<Bandwidth> bandwidth{Bandwidth::bytes_per_second(1'000'000), 1'000'000_GBps};
/// That a profile measures of a link, as a share of its line rate.
inline constexpr double least_link_efficiency = 0.01;
/// Of a link that is not down.
inline constexpr double least_link_share = 0.001;
/// Of a switch, a link or a first message.
inline constexpr Between<Duration> latency{0_ps, 1_s};
/// Of a kernel, an operation or a pause.
inline constexpr Between<Duration> time{0_ps, 3600_s};
/// Of a device or a host.
inline constexpr Between<Bytes> memory{Bytes(1'000'000), Bytes(1'000'000'000'000'000)};
/// Of a message or a sample.
inline constexpr Between<Bytes> message{Bytes(1), Bytes(1'000'000'000'000'000)};
/// Of a device.
inline constexpr Between<FlopRate> flop_rate{FlopRate(1e6), FlopRate(1e18)};
/// Of a device, relative to the profile's.
inline constexpr double least_speed = 0.001;
inline constexpr double most_speed = 1000;

/// Tokens of a sequence that is trained on, and that a rank holds of a micro-batch.
inline constexpr std::int64_t most_tokens_of_sequence = std::int64_t{1} << 30;
/// Tokens of a step.
inline constexpr std::int64_t most_tokens_of_step = 1'000'000'000'000;

}  // namespace limits

}  // namespace hdpsim
