#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

namespace hdpsim {

/// A stretch of time in which something is done. Layer 0 hides all others, the last one hides none.
struct LayeredStretch {
  double begin = 0;
  double end = 0;
  std::size_t layer = 0;
};

/// What is seen of overlapping stretches of time: at every moment that of the first layer.
template <std::size_t layers>
class LayeredTimes {
 public:
  /// O(n log n + n layers) time. Stretches that do not last are left out.
  explicit LayeredTimes(const std::vector<LayeredStretch>& stretches) {
    std::vector<Border> borders;
    borders.reserve(2 * stretches.size());
    for (const LayeredStretch& each : stretches) {
      if (each.end <= each.begin) continue;
      borders.push_back({each.begin, 1, each.layer});
      borders.push_back({each.end, -1, each.layer});
    }
    std::stable_sort(borders.begin(), borders.end(), [](const Border& a, const Border& b) { return a.at < b.at; });
    std::array<std::ptrdiff_t, layers> open{};
    for (std::size_t i = 0; i + 1 < borders.size(); ++i) {
      open.at(borders[i].layer) += borders[i].change;
      if (borders[i + 1].at == borders[i].at) continue;
      const auto first = std::find_if(open.begin(), open.end(), [](std::ptrdiff_t count) { return count > 0; });
      if (first == open.end()) continue;
      seen_.push_back({borders[i].at, borders[i + 1].at, static_cast<std::size_t>(first - open.begin())});
    }
  }

  /// The time of each layer between two moments.
  [[nodiscard]] std::array<double, layers> between(double begin, double end) const {
    std::array<double, layers> times{};
    auto at = std::partition_point(seen_.begin(), seen_.end(), [&](const auto& each) { return each.end <= begin; });
    for (; at != seen_.end() && at->begin < end; ++at) {
      times.at(at->layer) += std::min(end, at->end) - std::max(begin, at->begin);
    }
    return times;
  }

 private:
  struct Border {
    double at;
    std::ptrdiff_t change;
    std::size_t layer;
  };
  std::vector<LayeredStretch> seen_;  ///< In order and apart.
};

}  // namespace hdpsim
