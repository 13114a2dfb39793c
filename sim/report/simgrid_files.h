#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/network/traffic.h"
#include "sim/network/transfers.h"

namespace hdpsim {

/// Transfers over named links, for SimGrid (Casanova et al., J. Parallel Distrib. Comput. 74, 2014), whose solver of
/// shared links is independent of ours: where both agree, the result can be trusted.
struct SimgridTraffic {
  struct Link {
    std::string name;  ///< Unique among the links.
    double bytes_per_s = 0;
  };
  struct Message {
    std::string from;
    std::string to;
    Transfer transfer;  ///< With indices into `links`.
    double latency_s = 0;
    double arrival_s = 0;  ///< Arrival as we compute it, latency included.
  };
  std::vector<Link> links;
  std::vector<Message> messages;
};

/// The messages with the links that they use. `arrivals_s` are their arrivals from arrival_times or simulate_traffic.
[[nodiscard]] SimgridTraffic simgrid_traffic(const ClusterLinks& links, std::span<const Message> messages,
                                             std::span<const double> arrivals_s);

/// A platform in the XML of SimGrid (as 3.32 reads it): the links, two hosts per message and the route between them. A
/// route of a cluster depends on both ends of a message, and a table of all pairs would be O(hosts^2); with two hosts
/// per message, file and tables are O(messages). Latency is left out because SimGrid's model CM02 lets it change the
/// shares.
[[nodiscard]] std::string simgrid_platform(const SimgridTraffic& traffic);

/// The messages as CSV, a line each: sender and receiver (hosts of the platform), bytes, latency_s to add to its end,
/// arrival_s.
[[nodiscard]] std::string simgrid_messages(const SimgridTraffic& traffic);

}  // namespace hdpsim
