#include "sim/cluster/cluster.h"

#include <algorithm>

namespace hdpsim {
namespace {

std::int64_t signed_of(NodeId node) {
  return static_cast<std::int64_t>(node.index());
}

/// The least value among the nodes `first` to `last`: `own` for nodes of no kind, `member` for nodes of a kind.
template <class T>
T least(const ClusterSpec& cluster, std::int64_t first, std::int64_t last, T own, T NodeKind::*member) {
  std::int64_t covered = 0;
  std::optional<T> least;
  const auto take = [&](T value) { least = least ? std::min(*least, value) : value; };
  for (const NodeRange& range : cluster.kind_ranges) {
    const std::int64_t nodes = std::min(range.last, last) - std::max(range.first, first) + 1;
    if (nodes <= 0) continue;
    covered += nodes;
    take(cluster.kinds[range.kind].*member);
  }
  if (covered < last - first + 1) take(own);
  return least.value_or(own);
}

}  // namespace

NodeId ClusterSpec::node_of(DeviceId which) const {
  return NodeId(which.index() / static_cast<std::size_t>(devices_per_node));
}

std::int64_t ClusterSpec::nic_of(DeviceId which) const {
  return static_cast<std::int64_t>(which.index()) / devices_per_nic();
}

double ClusterSpec::speed_of(DeviceId which) const {
  const NodeKind* kind = kinds.empty() ? nullptr : kind_of(node_of(which));
  const double nominal = kind == nullptr ? 1.0 : kind->speed;
  const auto found = speed.find(static_cast<std::int64_t>(which.index()));
  return found == speed.end() ? nominal : nominal * found->second;
}

const NodeKind* ClusterSpec::kind_of(NodeId node) const {
  const auto after = std::upper_bound(kind_ranges.begin(), kind_ranges.end(), signed_of(node),
                                      [](std::int64_t at, const NodeRange& range) { return at < range.first; });
  if (after == kind_ranges.begin()) return nullptr;
  const NodeRange& range = *std::prev(after);
  return signed_of(node) <= range.last ? &kinds[range.kind] : nullptr;
}

Bandwidth ClusterSpec::slowest_nvlink(NodeId first, NodeId last) const {
  return least(*this, signed_of(first), signed_of(last), nvlink, &NodeKind::nvlink);
}

Bandwidth ClusterSpec::slowest_nic(NodeId first, NodeId last) const {
  return least(*this, signed_of(first), signed_of(last), nic, &NodeKind::nic);
}

Bandwidth ClusterSpec::fastest_nic() const {
  Bandwidth fastest = nic;
  for (const NodeKind& kind : kinds) fastest = std::max(fastest, kind.nic);
  return fastest;
}

Bytes ClusterSpec::least_device_memory() const {
  return least(*this, 0, nodes() - 1, device_memory, &NodeKind::device_memory);
}

Bytes ClusterSpec::least_host_memory() const {
  return least(*this, 0, nodes() - 1, host_memory, &NodeKind::host_memory);
}

std::int64_t ClusterSpec::nodes_per_unit(std::size_t tier) const {
  std::int64_t joined = 1;
  for (std::size_t below = 0; below <= tier; ++below) joined *= tiers[below].fan_in;
  return joined;
}

}  // namespace hdpsim
