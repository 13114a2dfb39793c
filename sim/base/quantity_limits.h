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

/// Limits of quantities that occur in many files. They lie far beyond all that is built, and are still such that sums
/// and products of what a step needs either stay within 64 bits or are refused as longer than a simulated step can be.
namespace limits {

/// Bandwidth of a link, a storage or a memory, from a tenth of 10 Mbit/s Ethernet. The least bandwidth stays above zero
/// after the least efficiency, oversubscription and share.
inline constexpr Between<Bandwidth> bandwidth{Bandwidth::bytes_per_second(1'000'000), 1'000'000_GBps};
/// Least efficiency of a link that a profile may measure, as a share of its line rate.
inline constexpr double least_link_efficiency = 0.01;
/// Least share of its bandwidth that a link which is not down has.
inline constexpr double least_link_share = 0.001;
/// Latency of a switch, a link or a first message.
inline constexpr Between<Duration> latency{0_ps, 1_s};
/// Time of a kernel, an operation or a pause.
inline constexpr Between<Duration> time{0_ps, 3600_s};
/// Memory of a device or a host.
inline constexpr Between<Bytes> memory{Bytes(1'000'000), Bytes(1'000'000'000'000'000)};
/// Size of a message or a sample.
inline constexpr Between<Bytes> message{Bytes(1), Bytes(1'000'000'000'000'000)};
/// Arithmetic speed of a device.
inline constexpr Between<FlopRate> flop_rate{FlopRate(1e6), FlopRate(1e18)};
/// Speed of a device relative to the profile's.
inline constexpr double least_speed = 0.001;
inline constexpr double most_speed = 1000;

/// Most devices of a cluster, and so nodes of it and ranks of a job.
inline constexpr std::int64_t most_devices = std::int64_t{16} * 1024 * 1024;

/// Most tokens of a training sequence, and of a micro-batch on one rank.
inline constexpr std::int64_t most_tokens_of_sequence = std::int64_t{1} << 30;
/// Most tokens of a step.
inline constexpr std::int64_t most_tokens_of_step = 1'000'000'000'000;

}  // namespace limits

}  // namespace hdpsim
