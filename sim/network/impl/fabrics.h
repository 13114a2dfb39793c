#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "sim/network/fabric.h"

namespace hdpsim {

/// A number that looks drawn, the same for the same argument: splitmix64 (Steele, Lea and Flood 2014).
[[nodiscard]] constexpr std::uint64_t mixed(std::uint64_t z) {
  z += 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31U);
}

/// The choices that switches make for the flow from one NIC to another: independent of each other, and reproducible.
class FlowHash {
 public:
  FlowHash(std::uint64_t seed, const Port& from, const Port& to) : state_(seed) {
    for (const std::size_t part : {from.node, from.rail, to.node, to.rail}) state_ = mixed(state_ ^ part);
  }

  /// One of `ways`, nearly uniform (ways far below 2^32).
  [[nodiscard]] std::size_t choose(std::size_t ways) {
    state_ = mixed(state_);
    return static_cast<std::size_t>(((state_ >> 32U) * ways) >> 32U);
  }

 private:
  std::uint64_t state_;
};

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
