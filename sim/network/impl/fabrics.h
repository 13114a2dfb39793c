#pragma once

#include <cstdint>
#include <memory>

#include "sim/network/fabric.h"

namespace hdpsim {

/// Far above any real rate in B/s, and low enough that sums of two do not overflow.
inline constexpr std::int64_t highest_rate = INT64_MAX / 2;

/// A rate in B/s, at most the highest.
[[nodiscard]] constexpr std::int64_t bounded_rate(Int128 rate) {
  return rate > highest_rate ? highest_rate : static_cast<std::int64_t>(rate);
}

// One function per kind of fabric: see ClusterSpec and FabricSpec for their meaning.

[[nodiscard]] std::unique_ptr<Fabric> make_clos_fabric(const ClusterSpec& cluster, double efficiency);
[[nodiscard]] std::unique_ptr<Fabric> make_torus_fabric(const TorusSpec& torus, std::int64_t rails, double efficiency);
[[nodiscard]] std::unique_ptr<Fabric> make_dragonfly_fabric(const DragonflySpec& dragonfly, std::int64_t rails,
                                                            const Routing& routing, double efficiency);
[[nodiscard]] std::unique_ptr<Fabric> make_graph_fabric(const SwitchGraphSpec& graph, std::int64_t rails,
                                                        std::uint64_t seed, double efficiency);

/// `nic`: the rate of the fastest NIC.
[[nodiscard]] std::unique_ptr<Fabric> make_spread_graph_fabric(const SwitchGraphSpec& graph, std::int64_t rails,
                                                               Bandwidth nic, double efficiency);

}  // namespace hdpsim
