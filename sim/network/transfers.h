#pragma once

#include <span>
#include <vector>

#include "sim/network/fair_share.h"

namespace hdpsim {

/// So many bytes over these links, from time 0 on. Infinitely many: it uses its links until all others have ended.
struct Transfer {
  std::vector<FairShare::Link> links;  ///< At least one.
  double bytes = 0;
};

/// Seconds at which each transfer ends (0 for one without end) when all begin together and share the links of `network` max-min fairly, without
/// latency. `network` must be idle, and is again afterwards. One event per group of transfers that end together, and a new
/// end for every flow whose rate changes.
[[nodiscard]] std::vector<double> end_times(FairShare& network, std::span<const Transfer> transfers);

}  // namespace hdpsim
