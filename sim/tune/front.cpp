#include "sim/tune/front.h"

#include <algorithm>
#include <numeric>

namespace hdpsim {
namespace {

bool is_covered(const FrontPoint& point, const FrontPoint& by) {
  for (std::size_t i = 0; i < point.size(); ++i) {
    if (by[i] > point[i]) return false;
  }
  return true;
}

}  // namespace

std::vector<std::size_t> pareto_front(const std::vector<FrontPoint>& points) {
  std::vector<std::size_t> order(points.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  // In this order no point dominates one before it.
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return points[a] < points[b]; });
  std::vector<std::size_t> front;
  for (const std::size_t i : order) {
    const auto covers = [&](std::size_t member) { return is_covered(points[i], points[member]); };
    if (std::none_of(front.begin(), front.end(), covers)) front.push_back(i);
  }
  std::sort(front.begin(), front.end());
  return front;
}

}  // namespace hdpsim
