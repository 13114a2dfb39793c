#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/cluster/cluster.h"
#include "sim/network/collective_plan.h"

namespace hdpsim {

/// The devices of a collective by node, in the order of their numbers.
class MembersByNode {
 public:
  /// `devices` are different devices of the cluster (checked), in any order.
  MembersByNode(const ClusterSpec& cluster, std::span<const DeviceId> devices);

  [[nodiscard]] std::size_t devices() const { return devices_.size(); }
  [[nodiscard]] std::size_t nodes() const { return first_.size() - 1; }
  [[nodiscard]] std::span<const DeviceId> of(std::size_t node) const {
    return std::span(devices_).subspan(first_[node], first_[node + 1] - first_[node]);
  }
  /// True if all nodes have the same number of members.
  [[nodiscard]] bool is_even() const;
  [[nodiscard]] bool has_one_each() const { return devices() == nodes(); }
  /// The number of NICs that the members of every node have at least.
  [[nodiscard]] std::size_t nics() const { return nics_; }
  /// The first member of a node on each of its first nics() NICs, as indices into its members, ascending.
  [[nodiscard]] std::span<const std::uint32_t> ports(std::size_t node) const {
    return std::span(ports_).subspan(node * nics_, nics_);
  }
  [[nodiscard]] DeviceId port(std::size_t node, std::size_t nic) const { return of(node)[ports(node)[nic]]; }

 private:
  void find_ports(const ClusterSpec& cluster);

  std::vector<DeviceId> devices_;
  std::vector<std::size_t> first_;  ///< By node: index of its first member; at the end, the number of members.
  std::size_t nics_ = 0;
  std::vector<std::uint32_t> ports_;
};

/// The longest path through a collective, in sequential messages.
struct Steps {
  std::size_t inside = 0;   ///< Within a node.
  std::size_t between = 0;  ///< Between nodes.
};

/// Collects the flows of a plan part by part. Sums are kept per link: nothing is stored per message.
class CollectivePlanBuilder {
 public:
  CollectivePlanBuilder(const ClusterLinks& links, PlanGrain grain);
  CollectivePlanBuilder(CollectivePlanBuilder&&) noexcept = default;
  ~CollectivePlanBuilder();

  /// Adds flows over the route from one device to another.
  void send(DeviceId from, DeviceId to, double flows = 1);
  /// The route from one device to another, for loads by link; its latency counts as that of a message.
  Route watch(DeviceId from, DeviceId to);
  /// Adds the flows of every member of a node to and from the NVSwitch (checked: there is one).
  void pass_nvswitch(std::span<const DeviceId> members, double out, double in);
  /// Adds flows over a single link.
  void load(LinkId link, double flows);
  /// Adds flows from each of the devices, no two in one node, to each other one.
  void send_all_pairs(std::span<const DeviceId> devices, double flows);
  /// With PlanGrain::parts, closes a part: the flows since the last call.
  void end_part();
  /// The plan; its latency is that of the steps, each with the latency of the longest message that was sent.
  [[nodiscard]] CollectivePlan finish(double bytes_per_flow, const Steps& steps);

  [[nodiscard]] const ClusterLinks& links() const { return links_; }
  [[nodiscard]] PlanGrain grain() const { return grain_; }

 private:
  void emit();

  const ClusterLinks& links_;
  PlanGrain grain_;
  std::vector<double> flows_;  ///< By link: flows of the part that is being built.
  std::vector<FairShare::Link> touched_;
  CollectivePlan plan_;
  Duration inside_;  ///< Latency of the longest message.
  Duration between_;
};

// Flows that several algorithms of collectives have in common.

/// Adds flows from one device to another and back.
void add_both_ways(CollectivePlanBuilder& builder, DeviceId one, DeviceId other, double flows);
/// Adds a chain inside a node for each port, up and down. The chain of a port goes from the port through all other
/// members, in cyclic order: it uses every hop except the one into the port.
void add_chains(CollectivePlanBuilder& builder, std::span<const DeviceId> members, std::span<const std::uint32_t> ports,
                double flows);
/// Loads the links between the ports of all nodes on one NIC and the port of the first, each with one flow in either
/// direction: switches reduce on the way to it, and copy on the way back.
void add_switch_tree(CollectivePlanBuilder& builder, const MembersByNode& members, std::size_t nic);

}  // namespace hdpsim
