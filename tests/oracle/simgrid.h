#pragma once

#include <cstddef>

#include "sim/report/simgrid_files.h"

namespace hdpsim::tests {

/// What SimGrid says of some traffic.
struct SimgridReplay {
  std::size_t messages = 0;
  double seconds = 0;             ///< Of the processor, for the simulation without reading the platform.
  double largest_difference = 0;  ///< Relative, of its arrivals to ours.
};

/// Runs simgrid_replay, built beside this program, on the traffic. Throws std::runtime_error if it fails.
[[nodiscard]] SimgridReplay replay_in_simgrid(const SimgridTraffic& traffic);

}  // namespace hdpsim::tests
