#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace hdpsim {

/// Figures to minimize: step time, memory, GPUs.
using FrontPoint = std::array<double, 3>;

/// Indices, ascending, of the points that no other point dominates (is at most as large in every figure and smaller in
/// one). Of equal points the first. O(n x size of the front).
[[nodiscard]] std::vector<std::size_t> pareto_front(const std::vector<FrontPoint>& points);

}  // namespace hdpsim
