#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/network/cluster_links.h"
#include "sim/network/collective_plan.h"
#include "sim/network/fair_share.h"
#include "sim/network/network_model.h"
#include "sim/network/transfers.h"

namespace hdpsim {

/// Which devices send to which; all send at once.
enum class TrafficPattern {
  permutation,  ///< Each to one other; the seed draws a cyclic order.
  incast,       ///< All others to the first.
  all_to_all,   ///< Each to all others; between nodes by the rail of the receiver, as NCCL does (PXN).
  ring,         ///< Each to the next.
  bisection,    ///< The first half to the second half and back: i with i + n/2.
};
[[nodiscard]] std::vector<std::string> traffic_pattern_names();
[[nodiscard]] TrafficPattern traffic_pattern(std::string_view name);  ///< One of the names (checked).

/// The messages among some devices.
struct Traffic {
  TrafficPattern pattern = TrafficPattern::ring;
  std::int64_t first = 0;    ///< The first device.
  std::int64_t devices = 2;  ///< Number of devices from `first` on; at least 2.
  double bytes = 0;          ///< From each sender to each of its receivers.
  std::uint64_t seed = 1;
};

/// An entry of a traffic matrix.
struct Message {
  DeviceId from;
  DeviceId to;
  double bytes = 0;  ///< > 0
};

/// The messages of a traffic. O(devices^2) for an all-to-all.
[[nodiscard]] std::vector<Message> messages_of(const Traffic& traffic);
/// Seconds at which each message has arrived, its latency included, when all begin together and share the links max-min
/// fairly from time 0 on. Events: one per end of a message.
[[nodiscard]] std::vector<double> arrival_times(const ClusterLinks& links, std::span<const Message> messages);

/// The result of simulating a traffic.
struct TrafficResult {
  std::int64_t messages = 0;
  double first_s = 0;  ///< Arrival of the first, the average and the last message.
  double mean_s = 0;
  double last_s = 0;
  LinkTraffic links;  ///< Of this traffic alone.
  /// Arrival of each of messages_of(). Empty for an all-to-all, which is not simulated message by message.
  std::vector<double> arrivals_s;
};

/// The transfers of traffic that never ends. An all-to-all is one coupled transfer: see collective_plan.h.
[[nodiscard]] std::vector<Transfer> endless_transfers(const ClusterLinks& links,
                                                      const std::vector<Traffic>& background);
/// The links of a cluster, idle.
[[nodiscard]] FairShare idle_network(const ClusterLinks& links);

/// Simulates `traffic` while each of `background` runs without end, all sharing the links max-min fairly. Events: one
/// per end of a message. An all-to-all runs at the pace of its fullest link, and all its messages end together.
[[nodiscard]] TrafficResult simulate_traffic(const ClusterLinks& links, const Traffic& traffic,
                                             const std::vector<Traffic>& background);

/// Total B/s of all devices of a cluster, without latencies, when each sends to the one half the cluster away (with an
/// odd number of devices, the last one does not send). At least two devices. O(devices).
[[nodiscard]] double bisection_rate(const ClusterLinks& links);

}  // namespace hdpsim
