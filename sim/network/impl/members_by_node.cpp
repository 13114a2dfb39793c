#include "sim/network/impl/members_by_node.h"

#include <algorithm>
#include <limits>

#include "sim/base/check.h"

namespace hdpsim {
namespace {

// Finds the places of the first member on each NIC.
void first_on_nics(const ClusterSpec& cluster, std::span<const DeviceId> members, std::vector<std::uint32_t>& places) {
  places.clear();
  std::int64_t nic = -1;
  for (std::uint32_t place = 0; place < members.size(); ++place) {
    if (cluster.nic_of(members[place]) == nic) continue;
    nic = cluster.nic_of(members[place]);
    places.push_back(place);
  }
}

}  // namespace

MembersByNode::MembersByNode(const ClusterSpec& cluster, std::span<const DeviceId> devices)
    : devices_(devices.begin(), devices.end()) {
  if (!std::is_sorted(devices_.begin(), devices_.end())) std::sort(devices_.begin(), devices_.end());
  const bool are_different = std::adjacent_find(devices_.begin(), devices_.end()) == devices_.end();
  HDPSIM_CHECK(devices.size() >= 2 && are_different, "a collective of {} devices", devices.size());
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    if (i == 0 || cluster.node_of(devices_[i]) != cluster.node_of(devices_[i - 1])) first_.push_back(i);
  }
  first_.push_back(devices_.size());
  find_ports(cluster);
}

void MembersByNode::find_ports(const ClusterSpec& cluster) {
  std::vector<std::uint32_t> places;
  nics_ = std::numeric_limits<std::size_t>::max();
  for (std::size_t node = 0; node < nodes(); ++node) {
    first_on_nics(cluster, of(node), places);
    nics_ = std::min(nics_, places.size());
  }
  ports_.reserve(nodes() * nics_);
  for (std::size_t node = 0; node < nodes(); ++node) {
    first_on_nics(cluster, of(node), places);
    ports_.insert(ports_.end(), places.begin(), places.begin() + static_cast<std::ptrdiff_t>(nics_));
  }
}

bool MembersByNode::is_even() const {
  for (std::size_t node = 1; node < nodes(); ++node) {
    if (of(node).size() != of(0).size()) return false;
  }
  return true;
}

}  // namespace hdpsim
