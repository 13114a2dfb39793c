#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hdpsim {

/// Work as the methods below add it up: whole numbers of 128 bits, whose sums are exact for any batch.
__extension__ using ExactWork = unsigned __int128;

/// Divides values into `parts` sets of similar sums by the largest differencing method (Karmarkar and Karp 1982), as
/// verl and OpenRLHF do (verl/utils/seqlen_balancing.py, karmarkar_karp): every state has `parts` sets; the two states
/// with the largest difference between their largest and smallest sets are joined, the largest set of the one with the
/// smallest of the other, until one state is left.
///
/// `equal_sizes`: all sets get the same number of values, which must be a multiple of `parts` (checked). The result has
/// the sets by falling sum, each with the places of its values in ascending order; with fewer values than parts some
/// are empty. O(n log^2 n) comparisons for n values.
[[nodiscard]] std::vector<std::vector<std::size_t>> largest_differencing(std::span<const ExactWork> values,
                                                                         std::size_t parts, bool equal_sizes);

}  // namespace hdpsim
