#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

#include "sim/base/random.h"
#include "sim/network/fair_share.h"
#include "tests/support/random_clusters.h"
#include "tests/support/seeds.h"

namespace hdpsim::tests {

/// B/s by link.
using Capacities = std::vector<double>;

/// Capacities that are all alike, within a factor of ten of each other, or over six powers of ten.
inline Capacities random_capacities(RandomStream& random) {
  Capacities capacities(1 + random.below(24));
  const std::int64_t decades = one_of(random, {0, 1, 6});
  for (double& capacity : capacities) capacity = 1e9 * std::pow(10, static_cast<double>(decades) * random.uniform());
  return capacities;
}

/// One to six random links.
inline std::vector<FairShare::Link> random_links(RandomStream& random, std::size_t count) {
  std::set<FairShare::Link> links;
  const std::size_t hops = 1 + random.below(std::min<std::size_t>(count, 6));
  while (links.size() < hops) links.insert(static_cast<FairShare::Link>(random.below(count)));
  return {links.begin(), links.end()};
}

/// Whether both differ by more than `tolerance`, relative to the expected value.
inline bool differs(double value, double expected, double tolerance = 1e-9) {
  return !(std::abs(value - expected) <= tolerance * std::abs(expected));
}

}  // namespace hdpsim::tests
