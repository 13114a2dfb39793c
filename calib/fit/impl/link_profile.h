#pragma once

#include <optional>
#include <vector>

#include "sim/profile/device_profile.h"

namespace hdpsim::calib {

/// The network parameters of the simulator from the messages over one kind of link: send/recv as latency and bandwidth,
/// a collective as latency, steps of a ring and bus bandwidth, over all numbers of ranks at once. The line rate is the
/// fastest rate of any message: a cluster's link should be declared with the rate that messages reach. Empty without
/// messages.
[[nodiscard]] std::optional<LinkProfile> link_profile(const std::vector<MessageSample>& samples, LinkKind link);

/// The same of samples of one kind over one link, without the line rate. Empty without samples. Latency and steps are
/// distinguished only where numbers of ranks differ; otherwise all of it is latency.
[[nodiscard]] std::optional<SendRecvRate> send_recv_rate(const std::vector<MessageSample>& samples);
[[nodiscard]] std::optional<CollectiveRate> collective_rate(const std::vector<MessageSample>& samples);

/// Factor of the bus bandwidth as nccl-tests defines it: bytes that every rank sends per byte of the size column.
[[nodiscard]] double bus_factor(MessageKind kind, std::int64_t ranks);
/// The steps of a ring that follow one another.
[[nodiscard]] double ring_steps(MessageKind kind, std::int64_t ranks);

}  // namespace hdpsim::calib
