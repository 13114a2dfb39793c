#pragma once

#include <limits>
#include <span>
#include <vector>

#include "sim/network/fair_share.h"

namespace hdpsim {

/// Bytes to move over some links, from time 0 on. If `bytes` is infinite, it uses its links until all others have
/// ended.
struct Transfer {
  std::vector<FairShare::Link> links;  ///< Links of one flow.
  double bytes = 0;
  std::vector<FairShare::Load> loads = {};               ///< Instead of `links`: coupled flows, `bytes` each.
  double cap = std::numeric_limits<double>::infinity();  ///< The maximum rate of each flow, B/s.
};

/// Seconds at which each transfer ends (0 for one without end) when all begin together and share the links of `network`
/// max-min fairly, without latency. `network` must be idle, and is idle again afterwards. One event per group of
/// transfers that end together, and a new end for every flow whose rate changes; links that cannot limit any transfer
/// are dropped first. Memory: O(transfers and their links).
[[nodiscard]] std::vector<double> end_times(FairShare& network, std::span<const Transfer> transfers);

}  // namespace hdpsim
