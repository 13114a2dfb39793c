#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace hdpsim {

/// Who may take equal items: a stage layers, a pipeline micro-batches.
struct SplitPart {
  double cost = 1;                                               ///< Of each item; > 0.
  std::int64_t least = 0;                                        ///< Items that it has to take, ...
  std::int64_t most = std::numeric_limits<std::int64_t>::max();  ///< ... and may take.
  std::int64_t times = 1;                                        ///< So many alike.
};

/// The least possible largest cost of a part, cost x items, when `total` items are dealt. Empty if they cannot be.
/// Exact: the value of the integer program. O(parts^2 log total).
[[nodiscard]] std::optional<double> least_maximum(std::int64_t total, std::span<const SplitPart> parts);

/// Items by part, in the order of the parts and each as often as it says, with the least possible maximum. Where the
/// parts could take more items without a larger maximum, those of the largest cost take fewer.
[[nodiscard]] std::optional<std::vector<std::int64_t>> min_max_split(std::int64_t total,
                                                                     std::span<const SplitPart> parts);

}  // namespace hdpsim
