#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/network/cluster_links.h"
#include "sim/network/collective_plan.h"
#include "sim/network/fair_share.h"
#include "sim/network/transfers.h"

namespace hdpsim {

/// Devices that send to each other, all at once.
enum class TrafficPattern {
  permutation,  ///< Everyone to someone else, drawn by the seed: a cyclic order.
  incast,       ///< Everyone to the first.
  all_to_all,   ///< Everyone to everyone; between nodes by the rail of the receiver, as NCCL does (PXN).
  ring,         ///< Everyone to the next.
  bisection,    ///< The first half to the second half and back: i with i + n/2.
};
[[nodiscard]] std::vector<std::string> traffic_pattern_names();
[[nodiscard]] TrafficPattern traffic_pattern(std::string_view name);  ///< One of the names (checked).

/// Some devices and what they send.
struct Traffic {
  TrafficPattern pattern = TrafficPattern::ring;
  std::int64_t first = 0;    ///< Device.
  std::int64_t devices = 2;  ///< From `first` on. At least 2.
  double bytes = 0;          ///< From each sender to each of its receivers.
  std::uint64_t seed = 1;
};

/// What the devices of a traffic send. Of an all-to-all, O(devices^2).
[[nodiscard]] std::vector<Message> messages_of(const Traffic& traffic);
/// Seconds at which each message has arrived, its latency included, when all begin together and share the links max-min
/// fairly from time 0 on. Events: one an end of a message.
[[nodiscard]] std::vector<double> arrival_times(const ClusterLinks& links, std::span<const Message> messages);

/// What became of it.
struct TrafficResult {
  std::int64_t messages = 0;
  double first_s = 0;  ///< When the first, the average and the last message had arrived.
  double mean_s = 0;
  double last_s = 0;
  std::vector<Bytes> link_bytes;  ///< Of this traffic alone, by LinkId.
  /// When each of messages_of had arrived. Empty for an all-to-all, which is not simulated message by message.
  std::vector<double> arrivals_s;
};

/// Traffic that repeats itself for ever. An all-to-all is one coupled transfer: see collective_plan.h.
[[nodiscard]] std::vector<Transfer> endless_transfers(const ClusterLinks& links,
                                                      const std::vector<Traffic>& background);
/// The links of a cluster, idle.
[[nodiscard]] FairShare idle_network(const ClusterLinks& links);

/// Simulates `traffic` while each of `background` repeats itself for ever, all sharing the links max-min fairly.
/// Events: one an end of a message. An all-to-all goes at the pace of its fullest link, all its messages ending
/// together.
[[nodiscard]] TrafficResult simulate_traffic(const ClusterLinks& links, const Traffic& traffic,
                                             const std::vector<Traffic>& background);

/// B/s of all devices of a cluster together, latencies aside, when each sends to the one half the cluster away (an
/// odd last one to nobody). At least two devices. O(devices).
[[nodiscard]] double bisection_rate(const ClusterLinks& links);

}  // namespace hdpsim
