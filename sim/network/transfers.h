#pragma once

#include <span>
#include <vector>

#include "sim/network/fair_share.h"

namespace hdpsim {

/// So many bytes over these links, from time 0 on.
struct Transfer {
  std::vector<FairShare::Link> links;  ///< At least one.
  double bytes = 0;
};

/// Seconds at which each transfer ends when all begin together and share the links of `network` max-min fairly, without
/// latency. `network` must be idle, and is again afterwards. One event per group of transfers that end together, and a new
/// end for every flow whose rate changes.
[[nodiscard]] std::vector<double> end_times(FairShare& network, std::span<const Transfer> transfers);

}  // namespace hdpsim
