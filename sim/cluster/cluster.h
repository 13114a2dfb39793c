#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/id.h"
#include "sim/base/units.h"
#include "sim/cluster/fabric_spec.h"

namespace hdpsim {

/// One level of switches above the nodes. A tier joins `fan_in` units of the tier below (nodes, for the first tier);
/// its uplinks carry 1 / oversubscription of what its units can send. The last tier has no uplinks.
struct SwitchTier {
  std::string name;
  std::int64_t fan_in = 1;
  double oversubscription = 1;  ///< >= 1; 1 never binds.
  Duration latency = {};        ///< One way, added to a path that turns around in this tier.
  /// Of a full unit and rail, where routing is ECMP; without: as many as carry a NIC's rate.
  std::optional<std::int64_t> uplinks = {};
};

enum class HostCpu { intel, amd };

enum class LinkDirection { out, in };  ///< Of a tier's link: out is up, in is down.

/// A link that carries less than its kind: a cable that lost lanes, a port that flaps or is down.
struct DegradedLink {
  enum class Kind { nvlink, nic, tier };
  Kind kind = Kind::nic;
  std::size_t tier = 0;    ///< Of a tier's link: index into ClusterSpec::tiers.
  std::int64_t unit = 0;   ///< Node, or unit of the tier.
  std::int64_t index = 0;  ///< GPU of the node, NIC of the node, or rail.
  LinkDirection direction = LinkDirection::out;
  double factor = 1;                      ///< Of its rate; in [0, 1]. 0: down, for NICs and tiers only.
  std::optional<std::int64_t> port = {};  ///< This port of the NIC, this plane of the tier alone; without: all.
};

/// Nodes that hold something else than the others. They have as many devices and NICs, and the same PCIe.
struct NodeKind {
  std::string name = {};
  std::string device = {};  ///< The word that profiles use; for reports.
  double speed = 1;         ///< Compute speed of its devices, relative to the profile's device.
  Bytes device_memory = {};
  Bytes host_memory = {};
  Bandwidth nvlink = {};
  Bandwidth nic = {};
};

/// Consecutive nodes of one kind.
struct NodeRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::size_t kind = 0;  ///< Index into ClusterSpec::kinds.
};

/// A cluster of nodes: what a preset or a cluster file describes. Devices are numbered node by node, and the devices of
/// a node are divided among its NICs in their order: with one NIC a device, NIC i serves device i. What is said of
/// nodes here holds for all that belong to none of `kinds`.
struct ClusterSpec {
  /// Each tier may add two links to a route, and routes have a fixed size: see most_fabric_hops.
  static constexpr std::size_t most_tiers = 4;
  static constexpr std::int64_t most_ports = 8;

  std::string name;
  std::string device;        ///< Device type, the word that profiles use: "A100-80GB".
  std::int64_t devices = 0;  ///< In all.
  std::int64_t devices_per_node = 1;
  int compute_capability = 80;   ///< Of the devices, in tenths: see device_facts.h.
  HostCpu cpu = HostCpu::intel;  ///< Of the nodes.
  Bytes device_memory;
  Bytes host_memory;  ///< Per node.
  Bandwidth nvlink;   ///< Per device and direction, to the other devices of its node. 0: they talk over PCIe.
  Duration nvlink_latency;
  std::int64_t nics_per_node = 1;
  Bandwidth nic;  ///< Per NIC and direction, all of its ports together.
  /// Each port lies on a switch plane of its own, and all planes are alike. Messages are striped over the ports that
  /// work.
  std::int64_t ports_per_nic = 1;
  Bandwidth pcie;  ///< Per uplink and direction, to host memory.
  std::int64_t devices_per_pcie_uplink = 1;
  std::vector<SwitchTier> tiers;
  FabricSpec fabric;  ///< What joins the nodes instead of tiers.
  Routing routing;
  bool in_network_reduction = false;  ///< The switches between nodes add up (NVIDIA SHARP).
  /// Devices that differ: index -> compute speed relative to nominal (0.8: slower).
  std::map<std::int64_t, double> speed;
  std::vector<DegradedLink> degraded;  ///< One direction each; later ones win.
  std::vector<NodeKind> kinds;
  std::vector<NodeRange> kind_ranges;  ///< In ascending order, apart from each other; the other nodes are as above.
  std::vector<std::string> notes;      ///< What the user should know of how this cluster was read.

  [[nodiscard]] std::int64_t nodes() const { return devices / devices_per_node; }
  [[nodiscard]] bool has_nvlink() const { return nvlink > Bandwidth{}; }
  [[nodiscard]] std::int64_t devices_per_nic() const { return devices_per_node / nics_per_node; }
  [[nodiscard]] NodeId node_of(DeviceId which) const;
  /// Of all devices of the cluster: node x nics_per_node + NIC of the node.
  [[nodiscard]] std::int64_t nic_of(DeviceId which) const;
  /// Compute speed relative to the profile's device: its own, times its node kind's. 1 unless the cluster says
  /// otherwise.
  [[nodiscard]] double speed_of(DeviceId which) const;
  /// Null for a node like most. O(log ranges).
  [[nodiscard]] const NodeKind* kind_of(NodeId node) const;
  /// Of all nodes from `first` to `last`. O(ranges).
  [[nodiscard]] Bandwidth slowest_nvlink(NodeId first, NodeId last) const;
  [[nodiscard]] Bandwidth slowest_nic(NodeId first, NodeId last) const;
  /// The rate that switches are built for.
  [[nodiscard]] Bandwidth fastest_nic() const;
  /// What fits the smallest device, and its host, fits everywhere.
  [[nodiscard]] Bytes least_device_memory() const;
  [[nodiscard]] Bytes least_host_memory() const;
  /// Nodes that one unit of a tier joins, directly or through the tiers below it.
  [[nodiscard]] std::int64_t nodes_per_unit(std::size_t tier) const;
};

}  // namespace hdpsim
