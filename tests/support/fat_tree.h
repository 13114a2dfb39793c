#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "sim/base/random.h"
#include "sim/network/fair_share.h"

namespace hdpsim::tests {

/// A three-tier fat tree of k^3 / 4 hosts (Al-Fares et al., SIGCOMM 2008): k pods of k/2 edge and k/2 aggregation switches,
/// k^2 / 4 core switches. All links have the same rate. Flows take the way up that `random` draws for them.
class FatTree {
 public:
  explicit FatTree(std::uint32_t k) : k_(k), half_(k / 2) {}

  [[nodiscard]] std::uint32_t hosts() const { return k_ * half_ * half_; }
  /// Host up and down, edge to aggregation up and down, aggregation to core up and down: k^3 / 4 of each.
  [[nodiscard]] std::size_t links() const { return std::size_t{6} * hosts(); }

  [[nodiscard]] std::vector<FairShare::Link> route(std::uint32_t from, std::uint32_t to, RandomStream& random) const {
    const std::uint32_t n = hosts();
    const std::uint32_t edge_from = from / half_;
    const std::uint32_t edge_to = to / half_;
    if (edge_from == edge_to) return {from, n + to};
    const auto aggregation = static_cast<std::uint32_t>(random.below(half_));
    const std::uint32_t up = edge_from * half_ + aggregation;
    const std::uint32_t down = edge_to * half_ + aggregation;
    if (edge_from / half_ == edge_to / half_) return {from, 2 * n + up, 3 * n + down, n + to};
    const auto core = static_cast<std::uint32_t>(random.below(half_));
    const std::uint32_t pod_from = edge_from / half_;
    const std::uint32_t pod_to = edge_to / half_;
    return {from,
            2 * n + up,
            4 * n + (pod_from * half_ + aggregation) * half_ + core,
            5 * n + (pod_to * half_ + aggregation) * half_ + core,
            3 * n + down,
            n + to};
  }

 private:
  std::uint32_t k_;
  std::uint32_t half_;
};

/// Somebody else for everybody: a random cyclic order, each sends to the next.
inline std::vector<std::uint32_t> random_partners(std::uint32_t hosts, RandomStream& random) {
  std::vector<std::uint32_t> order(hosts);
  std::iota(order.begin(), order.end(), 0U);
  for (std::uint32_t i = hosts - 1; i > 0; --i) std::swap(order[i], order[random.below(i + 1)]);
  std::vector<std::uint32_t> partner(hosts);
  for (std::uint32_t i = 0; i < hosts; ++i) partner[order[i]] = order[(i + 1) % hosts];
  return partner;
}

}  // namespace hdpsim::tests
