#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/cluster/cluster.h"
#include "sim/cluster/link_shares.h"
#include "sim/network/fabric.h"
#include "sim/network/link_efficiency.h"
#include "sim/network/network_model.h"

namespace hdpsim {

/// One direction of a link, for reports.
struct LinkInfo {
  LinkId id;
  std::string name;  ///< `node 3 nic 2 out`
  Bandwidth rate;
};

/// So many flows over a link.
struct LinkFlows {
  LinkId link;
  double flows = 0;
};

/// The links of a cluster that can ever bind: which there are, what they carry, and which of them a message takes. All
/// of it is computed from the spec; nothing is stored per device or pair.
///
/// * Every device has a link out of it and one into it: NVLink, or PCIe where the node has none. Nodes without NVLink
///   also have a link out of each PCIe switch that several devices hang on, and one into it. A node of one device has
///   neither.
/// * Every NIC has an out and an in, used by devices_per_nic devices. A cluster of one node has no NIC links.
/// * The links between NICs are those of the Fabric.
/// * A message inside a node takes the two devices' links and, between PCIe switches, those of the switches. One
///   between nodes goes out by the sender's NIC and in by the receiver's; if these have no way to each other, it goes
///   to the device of the sender's node that has the receiver's rail first.
/// * Where a NIC or an uplink on this way is down, the message takes the next rail that is up at both ends, through the
///   devices that have it. A NIC of several ports is one link that carries what its ports that are up carry together: a
///   message is striped over them. What a message finds on its way is added up link by link, not plane by plane: where
///   different planes are down along it, it may get more than the planes that it can use have.
///
/// Rates are physical rates x efficiency. A link that is down, which no route has, tells 1 B/s.
class ClusterLinks {
 public:
  ClusterLinks(const ClusterSpec& cluster, const LinkEfficiency& efficiency);

  /// Two different devices of the cluster (checked).
  [[nodiscard]] Route route(DeviceId from, DeviceId to) const;
  /// What one flow from each of these devices (ascending, no two of a node) to each other puts on the links, without a
  /// look at every pair. Nothing where that takes one: see Fabric::all_pairs. Nothing either if they differ in rail.
  [[nodiscard]] std::optional<std::vector<LinkFlows>> all_pairs(std::span<const DeviceId> devices) const;
  [[nodiscard]] Bandwidth rate(LinkId link) const;
  /// True for links of devices and PCIe switches, false for NICs and what is between nodes.
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
  /// How a message gets from one node to another.
  struct Rails {
    std::size_t from;
    std::size_t to;
  };
  /// What an id stands for. Ids are ordered by kind; within one by unit, then direction.
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
  [[nodiscard]] Rails rails_between(std::size_t from_nic, std::size_t to_nic) const;
  [[nodiscard]] DeviceId device_at(std::size_t node, std::size_t rail, DeviceId own) const;
  void append_in_node(Route& route, DeviceId from, DeviceId to) const;
  void append_between_nodes(Route& route, DeviceId from, DeviceId to) const;
  void append(Route& route, std::size_t link) const;

  ClusterSpec cluster_;  ///< Without its stragglers.
  LinkEfficiency efficiency_;
  LinkShares shares_;
  Bandwidth device_rate_;  ///< Of nodes of no kind, as the next.
  Bandwidth nic_rate_;
  std::shared_ptr<const Fabric> fabric_;  ///< Nothing in a cluster of one node.
  std::size_t first_pcie_switch_link_ = 0;
  std::size_t first_nic_link_ = 0;
  std::size_t first_fabric_link_ = 0;
  bool passes_other_devices_ = false;     ///< A message may go through devices that are neither sender nor receiver.
  std::map<LinkId, Bandwidth> degraded_;  ///< Rates of the devices' and NICs' links that differ from their kind.
  std::size_t count_ = 0;
};

}  // namespace hdpsim
