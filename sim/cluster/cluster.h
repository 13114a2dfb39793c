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
/// its uplinks carry 1 / oversubscription of the rate at which its units can send. The last tier has no uplinks.
struct SwitchTier {
  std::string name;
  std::int64_t fan_in = 1;
  double oversubscription = 1;  ///< At least 1; at 1 the uplinks never limit.
  Duration latency = {};        ///< One way, added to a path that turns around in this tier.
  /// Uplinks of a full unit and rail under ECMP; if empty, as many as carry the rate of its NICs.
  std::optional<std::int64_t> uplinks = {};
};

enum class HostCpu { intel, amd };

enum class LinkDirection { out, in };  ///< For a link of a tier, out is up and in is down.

/// A link with less than its nominal rate: a cable that lost lanes, a port that flaps or is down.
struct DegradedLink {
  enum class Kind { nvlink, nic, tier };
  Kind kind = Kind::nic;
  std::size_t tier = 0;    ///< For a link of a tier: index into ClusterSpec::tiers.
  std::int64_t unit = 0;   ///< Node, or unit of the tier.
  std::int64_t index = 0;  ///< GPU of the node, NIC of the node, or rail.
  LinkDirection direction = LinkDirection::out;
  double factor = 1;                      ///< Share of its rate, in [0, 1]. 0: down, for NICs and tiers only.
  std::optional<std::int64_t> port = {};  ///< Only this port of the NIC or this plane of the tier; if empty, all.
};

/// Nodes that differ from the others. They have as many devices and NICs, and the same PCIe.
struct NodeKind {
  std::string name = {};
  std::string device = {};  ///< The name that profiles use; for reports.
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

/// A cluster of nodes, as a preset or a cluster file describes it. Devices are numbered node by node, and the devices
/// of a node are divided among its NICs in their order: with one NIC per device, NIC i serves device i. The properties
/// of nodes hold for all nodes that belong to none of `kinds`.
struct ClusterSpec {
  /// Each tier may add two links to a route, and routes have a fixed size: see most_fabric_hops.
  static constexpr std::size_t most_tiers = 4;
  static constexpr std::int64_t most_ports = 8;

  std::string name;
  std::string device;        ///< Device type, the name that profiles use: "A100-80GB".
  std::int64_t devices = 0;  ///< Number of devices of the whole cluster.
  std::int64_t devices_per_node = 1;
  /// Jobs may get a part of a node, in whole trays of so many devices. Empty: whole nodes.
  std::optional<std::int64_t> devices_per_tray;
  int compute_capability = 80;   ///< Compute capability of the devices, in tenths: see device_facts.h.
  HostCpu cpu = HostCpu::intel;  ///< Vendor of the nodes' CPUs.
  Bytes device_memory;
  Bytes host_memory;  ///< Per node.
  Bandwidth nvlink;   ///< Per device and direction, to the other devices of its node. 0: they communicate over PCIe.
  Duration nvlink_latency;
  std::int64_t nics_per_node = 1;
  Bandwidth nic;  ///< Per NIC and direction, all of its ports together.
  /// Each port is on a switch plane of its own, and all planes are alike. Messages are striped over the ports that
  /// work.
  std::int64_t ports_per_nic = 1;
  Bandwidth pcie;  ///< Per uplink and direction, to host memory.
  std::int64_t devices_per_pcie_uplink = 1;
  std::vector<SwitchTier> tiers;
  /// NIC i of every node is on a plane of switches of its own. Otherwise all NICs of a node are on the same switches.
  bool has_rails = true;
  FabricSpec fabric;  ///< The fabric that joins the nodes instead of tiers.
  Routing routing;
  bool in_network_reduction = false;  ///< The switches between nodes reduce (NVIDIA SHARP).
  /// Devices with another speed: index -> compute speed relative to nominal (0.8: slower).
  std::map<std::int64_t, double> speed;
  std::vector<DegradedLink> degraded;  ///< One direction each; later ones win.
  std::vector<NodeKind> kinds;
  std::vector<NodeRange> kind_ranges;  ///< In ascending order, without overlap; the other nodes are as described above.
  std::vector<std::string> notes;      ///< Notes for the user on how this cluster was read.

  [[nodiscard]] std::int64_t nodes() const { return devices / devices_per_node; }
  [[nodiscard]] bool has_nvlink() const { return nvlink > Bandwidth{}; }
  [[nodiscard]] std::int64_t devices_per_nic() const { return devices_per_node / nics_per_node; }
  /// The planes of switches of its tiers, and the one on which a NIC of a node is.
  [[nodiscard]] std::int64_t rails() const { return has_rails ? nics_per_node : 1; }
  [[nodiscard]] std::int64_t rail_of(std::int64_t nic_of_node) const { return has_rails ? nic_of_node : 0; }
  [[nodiscard]] NodeId node_of(DeviceId which) const;
  /// The index among all NICs of the cluster: node x nics_per_node + NIC of the node.
  [[nodiscard]] std::int64_t nic_of(DeviceId which) const;
  /// Compute speed relative to the profile's device: the device's own, times that of its node's kind. 1 unless the
  /// cluster says otherwise.
  [[nodiscard]] double speed_of(DeviceId which) const;
  /// Null for a node of no kind. O(log ranges).
  [[nodiscard]] const NodeKind* kind_of(NodeId node) const;
  /// The least rate among the nodes `first` to `last`. O(ranges).
  [[nodiscard]] Bandwidth slowest_nvlink(NodeId first, NodeId last) const;
  [[nodiscard]] Bandwidth slowest_nic(NodeId first, NodeId last) const;
  /// The fastest NIC of any node, for which switches are built.
  [[nodiscard]] Bandwidth fastest_nic() const;
  /// The memory of the smallest device, and of the smallest host: what fits there fits everywhere.
  [[nodiscard]] Bytes least_device_memory() const;
  [[nodiscard]] Bytes least_host_memory() const;
  /// The share of one device in the memory of the smallest host.
  [[nodiscard]] Bytes least_host_share() const { return least_host_memory() / devices_per_node; }
  /// Nodes that one unit of a tier joins, directly or through the tiers below it.
  [[nodiscard]] std::int64_t nodes_per_unit(std::size_t tier) const;
};

}  // namespace hdpsim
