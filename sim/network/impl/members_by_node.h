#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/cluster/cluster.h"

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

}  // namespace hdpsim
