#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/units.h"
#include "sim/cluster/cluster.h"
#include "sim/cluster/link_shares.h"
#include "sim/network/fabric.h"
#include "sim/network/network_model.h"
#include "sim/profile/device_profile.h"

namespace hdpsim {

/// The share of the links' rates that software reaches, and its start-up time per message, from a device profile. The
/// defaults are the bare hardware.
struct LinkEfficiency {
  double nvlink = 1;              ///< Share of the physical rate; in (0, 1].
  double network = 1;             ///< Share of the physical rate of NICs and switch links; in (0, 1].
  Duration nvlink_latency = {};   ///< Start-up of a message inside a node.
  Duration network_latency = {};  ///< Start-up of a message between nodes.
};

/// The efficiency of point-to-point messages. Figures that the profile lacks are those of the bare hardware.
[[nodiscard]] LinkEfficiency message_efficiency(const DeviceProfile& profile);

/// The efficiency of messages that take `factor` times as long; none is faster than its link.
[[nodiscard]] LinkEfficiency slowed(LinkEfficiency efficiency, double factor);

/// One direction of a link, for reports.
struct LinkInfo {
  LinkId id;
  std::string name;  ///< `node 3 nic 2 out`
  Bandwidth rate;
};

/// The number of flows over one link.
struct LinkFlows {
  LinkId link;
  double flows = 0;
};

/// The links of a cluster that can ever be a bottleneck: their ids, their rates, and the route of a message over them.
/// All of it is computed from the spec; nothing is stored per device or pair.
///
/// * Every device has a link out of it and one into it: NVLink, or PCIe where the node has no NVLink. Nodes without
///   NVLink also have a link out of and one into each PCIe switch that several devices share. In nodes of one device
///   there are neither.
/// * Every NIC has a link out and one in, used by devices_per_nic devices. A cluster of one node has no NIC links.
/// * The links between NICs are those of the Fabric.
/// * A message inside a node takes the two devices' links and, between PCIe switches, those of the switches. A message
///   between nodes leaves by the sender's NIC and enters by the receiver's; if there is no path between the two, it
///   first goes to the device of the sender's node on the receiver's rail.
/// * Where a NIC or an uplink on this path is down, the message takes the next rail that is up at both ends, through
///   the devices on that rail. A NIC of several ports is one link with the total rate of its ports that are up: a
///   message is striped over them. Rates along a path are added up link by link, not plane by plane: where different
///   planes are down along it, a message may get more than the planes that it can use have.
///
/// Rates are physical rates x efficiency. No route uses a link that is down; rate() returns 1 B/s for it.
class ClusterLinks {
 public:
  ClusterLinks(const ClusterSpec& cluster, const LinkEfficiency& efficiency);

  /// The route between two different devices of the cluster (checked).
  [[nodiscard]] Route route(DeviceId from, DeviceId to) const;
  /// As NetworkModel::routes_by_all_nics(). On a rail that is not its own, a message goes through the first device of
  /// each node there.
  [[nodiscard]] std::vector<Route> routes_by_all_nics(DeviceId from, DeviceId to) const;
  /// The load of the links under one flow from each of these devices (ascending, no two in one node) to each other one,
  /// computed without visiting every pair. Returns no value if the fabric cannot do that (see Fabric::all_pairs) or if
  /// the devices differ in rail.
  [[nodiscard]] std::optional<std::vector<LinkFlows>> all_pairs(std::span<const DeviceId> devices) const;
  [[nodiscard]] Bandwidth rate(LinkId link) const;
  /// True for links of devices and PCIe switches, false for those of NICs and between nodes.
  [[nodiscard]] bool is_inside_node(LinkId link) const { return link.index() < first_nic_link_; }
  [[nodiscard]] std::string name(LinkId link) const;
  /// True if one device alone sends or receives over this link, for itself or for others.
  [[nodiscard]] bool has_one_owner(LinkId link) const;
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] const ClusterSpec& cluster() const { return cluster_; }
  /// All links in the order of their ids.
  [[nodiscard]] std::vector<LinkInfo> list() const;

 private:
  enum class Kind { device, pcie_switch, nic, fabric };
  /// The rails by which a message leaves one node and enters another.
  struct Rails {
    std::size_t from;
    std::size_t to;
  };
  /// The meaning of a link id. Ids are ordered by kind, within a kind by unit, then by direction.
  struct Parts {
    Kind kind;
    std::size_t unit;       ///< Device, PCIe switch or NIC of the whole cluster, or the fabric's number of the link.
    std::size_t direction;  ///< 0: out. 1: in.
  };

  void degrade();
  [[nodiscard]] bool has_rails_apart() const;
  [[nodiscard]] Bandwidth nominal_rate(const Parts& part) const;
  [[nodiscard]] Parts parts(LinkId link) const;
  [[nodiscard]] std::size_t node_of(const Parts& part) const;
  [[nodiscard]] bool is_up(std::size_t from_node, std::size_t to_node, const Rails& rails) const;
  [[nodiscard]] Rails rails_between(std::size_t from_nic, std::size_t to_nic) const;
  [[nodiscard]] DeviceId device_at(std::size_t node, std::size_t rail, DeviceId own) const;
  void append_in_node(Route& route, DeviceId from, DeviceId to) const;
  void append_between_nodes(Route& route, DeviceId from, DeviceId to, const Rails& rails) const;
  void append(Route& route, std::size_t link, double share = 1) const;

  ClusterSpec cluster_;  ///< Without its stragglers.
  LinkEfficiency efficiency_;
  LinkShares shares_;
  Bandwidth device_rate_;  ///< Rate in nodes without a NodeKind; the same for nic_rate_.
  Bandwidth nic_rate_;
  std::shared_ptr<const Fabric> fabric_;  ///< Null in a cluster of one node.
  std::size_t first_pcie_switch_link_ = 0;
  std::size_t first_nic_link_ = 0;
  std::size_t first_fabric_link_ = 0;
  bool passes_other_devices_ = false;     ///< A message may go through devices that are neither sender nor receiver.
  std::map<LinkId, Bandwidth> degraded_;  ///< Rates of the devices' and NICs' links that differ from their kind.
  std::size_t count_ = 0;
};

/// The kind of a link, which is its name without numbers: `node 3 nic 2 out` is one of `node # nic # out`.
[[nodiscard]] std::string link_kind(std::string_view name);

}  // namespace hdpsim
