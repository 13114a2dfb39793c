#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/network/traffic.h"
#include "sim/network/transfers.h"

namespace hdpsim {

/// Transfers over named links, for SimGrid (Casanova et al., J. Parallel Distrib. Comput. 74, 2014), whose solver of
/// shared links is not ours: what both say can be believed.
struct SimgridTraffic {
  struct Link {
    std::string name;  ///< No other link has it.
    double bytes_per_s = 0;
  };
  struct Message {
    std::string from;
    std::string to;
    Transfer transfer;  ///< Over indices into `links`.
    double latency_s = 0;
    double arrival_s = 0;  ///< As we have it, latency included.
  };
  std::vector<Link> links;
  std::vector<Message> messages;
};

/// With the links that the messages use. `arrivals_s`: of each message, as arrival_times or simulate_traffic has them.
[[nodiscard]] SimgridTraffic simgrid_traffic(const ClusterLinks& links, std::span<const Message> messages,
                                             std::span<const double> arrivals_s);

/// A platform in the XML of SimGrid (as 3.32 reads it): the links, two hosts a message and the route between them. A
/// route of a cluster depends on both ends of a message, and a table of all pairs would be O(hosts^2); with hosts of
/// its own for each message, file and tables are O(messages). No latency: SimGrid's model CM02 lets it change the
/// shares.
[[nodiscard]] std::string simgrid_platform(const SimgridTraffic& traffic);

/// CSV, a line a message: sender and receiver (hosts of the platform), bytes, latency_s to add to its end, arrival_s.
[[nodiscard]] std::string simgrid_messages(const SimgridTraffic& traffic);

}  // namespace hdpsim
