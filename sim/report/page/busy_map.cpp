#include "sim/report/page/busy_map.h"

#include <algorithm>
#include <numeric>

namespace hdpsim {
namespace {

std::vector<double> busy_seconds(const std::vector<Breakdown>& ranks) {
  std::vector<double> seconds;
  seconds.reserve(ranks.size());
  for (const Breakdown& rank : ranks) {
    seconds.push_back((rank.total() - rank[Activity::group_wait] - rank[Activity::bubble]).seconds());
  }
  return seconds;
}

}  // namespace

BusyMap busy_map(const std::vector<Breakdown>& ranks, std::size_t most_cells) {
  const std::vector<double> seconds = busy_seconds(ranks);
  const std::size_t per_cell = std::max<std::size_t>(1, (seconds.size() + most_cells - 1) / most_cells);
  BusyMap map{static_cast<std::int64_t>(per_cell), {}};
  for (std::size_t first = 0; first < seconds.size(); first += per_cell) {
    const std::size_t count = std::min(per_cell, seconds.size() - first);
    const auto begin = seconds.begin() + static_cast<std::ptrdiff_t>(first);
    map.cells.push_back(std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(count), 0.0) /
                        static_cast<double>(count));
  }
  return map;
}

BusyHistogram busy_histogram(const std::vector<Breakdown>& ranks, std::size_t bins) {
  const std::vector<double> seconds = busy_seconds(ranks);
  if (seconds.empty()) return {};
  const auto [least, most] = std::minmax_element(seconds.begin(), seconds.end());
  BusyHistogram histogram{*least, *most, std::vector<std::int64_t>(*most > *least ? bins : 1)};
  const double width = (*most - *least) / static_cast<double>(bins);
  for (const double second : seconds) {
    const double place = width > 0 ? (second - *least) / width : 0;
    ++histogram.counts[std::min(static_cast<std::size_t>(place), histogram.counts.size() - 1)];
  }
  return histogram;
}

}  // namespace hdpsim
