#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "sim/base/units.h"

namespace hdpsim {

/// How switches choose among equal paths.
struct Routing {
  enum class Policy {
    /// Packet by packet, to the least loaded: a message is spread over all of them, and parallel links act as one.
    adaptive,
    ecmp,  ///< Flow by flow, by a hash of the two NICs: flows may meet on one link while others are idle.
  };
  Policy policy = Policy::adaptive;
  std::uint64_t seed = 0;  ///< Seed of the hash.
};

/// Nodes on a torus, numbered along the first dimension, then the second, ... Each rail is a torus of its own. Messages
/// go dimension by dimension, each the shorter way round (up on a tie).
struct TorusSpec {
  std::vector<std::int64_t> shape;  ///< Nodes per dimension.
  Bandwidth bandwidth;              ///< Per link and direction.
  Duration latency;                 ///< Per hop.
};

/// Dragonfly+ (Shpiner et al., HiPINEB 2017): groups of leaf and spine switches, every leaf joined to every spine of
/// its group, spines joined to those of other groups. Each rail is a dragonfly of its own. Messages take shortest ways,
/// by the spines and global links that the routing chooses.
struct DragonflySpec {
  std::int64_t groups = 1;
  std::int64_t leaves = 1;          ///< Per group.
  std::int64_t spines = 1;          ///< Per group.
  std::int64_t nodes_per_leaf = 1;  ///< Nodes are numbered leaf by leaf, group by group.
  std::int64_t global_links = 1;    ///< Between every two groups, spread evenly over the spines.
  Bandwidth local;                  ///< Per link between a leaf and a spine and direction.
  Bandwidth global;                 ///< Per link between two groups and direction.
  Duration latency;                 ///< Per switch.
  Duration global_latency;          ///< Added by a link between groups.
};

/// Switches and cables one by one. A NIC is attached to one switch; a message takes shortest paths in hops, among equal
/// ones those that the routing chooses.
struct SwitchGraphSpec {
  struct Switch {
    std::string name;
    Duration latency;
  };
  struct Cable {
    std::size_t from = 0;  ///< Index into `switches`.
    std::size_t to = 0;
    Bandwidth bandwidth;     ///< Per direction, of each cable. 0: they are missing, and messages take another path.
    std::int64_t count = 1;  ///< Parallel cables.
    Bandwidth nominal{};     ///< What `bandwidth` was before it was degraded; 0: it was not.
    [[nodiscard]] bool is_missing() const { return bandwidth == Bandwidth{}; }
  };
  std::vector<Switch> switches;
  std::vector<Cable> cables;
  std::vector<std::size_t> attached;  ///< The switch of each NIC, by node x NICs per node + NIC.
};

/// The fabric that joins the nodes, if it is not tiers of switches.
using FabricSpec = std::variant<std::monostate, TorusSpec, DragonflySpec, SwitchGraphSpec>;

/// The most links of a path over a fabric.
inline constexpr std::int64_t most_fabric_hops = 28;

}  // namespace hdpsim
