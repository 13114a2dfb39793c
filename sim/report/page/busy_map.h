#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/engine/timeline.h"

namespace hdpsim {

/// Busy times of ranks in at most `most_cells` numbers: each is the mean of equally many consecutive ranks (of fewer at
/// the end). Busy is everything but group_wait and bubble. Seconds.
struct BusyMap {
  std::int64_t ranks_per_cell = 1;
  std::vector<double> cells;
};
[[nodiscard]] BusyMap busy_map(const std::vector<Breakdown>& ranks, std::size_t most_cells);

/// Number of ranks by busy time, in bins of equal width between the least and the most. One bin if all are equal.
struct BusyHistogram {
  double least = 0;  ///< Seconds.
  double most = 0;
  std::vector<std::int64_t> counts;
};
[[nodiscard]] BusyHistogram busy_histogram(const std::vector<Breakdown>& ranks, std::size_t bins);

}  // namespace hdpsim
