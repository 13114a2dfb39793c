#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/cluster/cluster.h"
#include "sim/network/link_efficiency.h"
#include "sim/network/network_model.h"

namespace hdpsim {

/// One direction of a link, for reports.
struct LinkInfo {
  LinkId id;
  std::string name;  ///< `node 3 nic 2 out`
  Bandwidth rate;
};

/// The links of a cluster that can ever bind: which there are, what they carry, and which of them a message takes. All
/// of it is computed from the spec; nothing is stored per device or pair.
///
/// * Every device has an NVLink out of it and one into it; every NIC has an out and an in, used by devices_per_nic
/// devices.
///   A cluster of one node has no NIC links, a node of one device no NVLinks.
/// * Nodes are rail-wired: NIC i of every node lies on rail i, and each rail is a switch plane of its own up to the
/// last
///   tier. A unit of a tier (a ToR, ...) has for each rail an uplink and a downlink of
///   fan_in x (rate of one link below) / oversubscription. They exist only in tiers whose units can send more than
///   that, or where one of them is degraded; elsewhere they cannot bind.
/// * A message inside a node takes two NVLinks. One between nodes goes out by the sender's NIC and in by the
/// receiver's; if
///   they differ in rail the change costs nothing here.
///
/// Rates are physical rates x efficiency.
class ClusterLinks {
 public:
  ClusterLinks(const ClusterSpec& cluster, const LinkEfficiency& efficiency);

  /// Two different devices of the cluster (checked).
  [[nodiscard]] Route route(DeviceId from, DeviceId to) const;
  [[nodiscard]] Bandwidth rate(LinkId link) const;
  [[nodiscard]] std::string name(LinkId link) const;
  /// True if one device alone sends or receives over this link.
  [[nodiscard]] bool has_one_owner(LinkId link) const;
  /// The least that a link of any device, NIC or tier's unit carries that a ring over all nodes from `first` to `last`
  /// crosses on the way between two nodes, and between two devices of a node.
  [[nodiscard]] Bandwidth slowest_between_nodes(NodeId first, NodeId last) const;
  [[nodiscard]] Bandwidth slowest_in_nodes(NodeId first, NodeId last) const;
  [[nodiscard]] std::size_t count() const { return count_; }
  /// All links in the order of their ids.
  [[nodiscard]] std::vector<LinkInfo> list() const;

 private:
  enum class Kind { nvlink, nic, tier };
  /// What an id stands for: a device's NVLink, NIC `rail` of node `unit`, or the link of a tier's unit on one rail.
  struct Parts {
    Kind kind;
    std::size_t tier_links;  ///< Index; for a tier's link only.
    std::size_t unit;
    std::size_t rail;
    std::size_t direction;  ///< 0: out or up. 1: in or down.
  };
  /// The uplinks and downlinks of a tier where they can bind.
  struct TierLinks {
    std::size_t tier;
    std::size_t first;  ///< Id of the first one: first + (unit x rails + rail) x 2 + direction.
    std::size_t units;
    Bandwidth rate;
  };

  void add_tier_links();
  void degrade();
  [[nodiscard]] bool is_degraded(std::size_t tier) const;
  [[nodiscard]] Bandwidth nominal_rate(const Parts& part) const;
  [[nodiscard]] Parts parts(LinkId link) const;
  [[nodiscard]] std::size_t turn_around_tier(NodeId from, NodeId to) const;
  [[nodiscard]] Route route_in_node(DeviceId from, DeviceId to) const;
  [[nodiscard]] Route route_between_nodes(DeviceId from, DeviceId to) const;
  void append(Route& route, std::size_t link) const;

  ClusterSpec cluster_;  ///< Without its stragglers.
  LinkEfficiency efficiency_;
  Bandwidth nvlink_rate_;
  Bandwidth nic_rate_;
  std::size_t first_nic_link_ = 0;
  std::vector<TierLinks> tier_links_;
  std::map<LinkId, Bandwidth> degraded_;  ///< Rates of the links that differ from their kind.
  std::size_t count_ = 0;
};

}  // namespace hdpsim
