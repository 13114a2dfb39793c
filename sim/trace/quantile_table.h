#pragma once

#include <vector>

#include "sim/trace/length_distribution.h"
#include "sim/trace/length_tally.h"

namespace hdpsim {

/// About `points` points (at least 16) of a distribution of lengths, from the shortest to the longest: three quarters
/// of them evenly spaced up to quantile 0.99, the others in equal ratios of 1 - quantile down to one document (at least
/// 1e-7), because few long documents hold much of the tokens. Redundant points are left out.
[[nodiscard]] std::vector<QuantilePoint> quantile_table(const LengthTally& lengths, int points = 1000);
[[nodiscard]] std::vector<QuantilePoint> quantile_table(const LengthDistribution& lengths, int points = 1000);

}  // namespace hdpsim
