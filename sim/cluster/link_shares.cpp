#include "sim/cluster/link_shares.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace hdpsim {
namespace {

LinkShares::Link link_of(const DegradedLink& degraded) {
  return {degraded.kind, degraded.tier, degraded.unit, degraded.index, degraded.direction};
}

bool is_down(double share) {
  return share == 0;
}

/// Nodes that represent all: those with a NIC that is down, the first one of each unit with an uplink that is down, and
/// the first and the last of the others.
std::vector<std::int64_t> witnesses(const ClusterSpec& cluster) {
  std::set<std::int64_t> nodes;
  for (const DegradedLink& link : cluster.degraded) {
    if (!is_down(link.factor)) continue;
    const bool is_tier = link.kind == DegradedLink::Kind::tier;
    nodes.insert(is_tier ? link.unit * cluster.nodes_per_unit(link.tier) : link.unit);
  }
  std::int64_t first = 0;
  while (nodes.count(first) > 0) ++first;
  std::int64_t last = cluster.nodes() - 1;
  while (nodes.count(last) > 0) --last;
  for (const std::int64_t whole : {first, last}) {
    if (whole >= 0 && whole < cluster.nodes()) nodes.insert(whole);
  }
  return {nodes.begin(), nodes.end()};
}

}  // namespace

LinkShares::LinkShares(const ClusterSpec& cluster) : cluster_(cluster) {
  cluster_.speed.clear();
  for (const DegradedLink& degraded : cluster_.degraded) {
    const auto ports = static_cast<std::size_t>(cluster_.ports_per_nic);
    std::vector<double>& shares = shares_.try_emplace(link_of(degraded), ports, 1.0).first->second;
    if (degraded.port) {
      shares.at(static_cast<std::size_t>(*degraded.port)) = degraded.factor;
    } else {
      std::fill(shares.begin(), shares.end(), degraded.factor);
    }
  }
  for (const auto& [link, shares] : shares_) {
    all_up_ = all_up_ && std::none_of(shares.begin(), shares.end(), is_down);
  }
}

double LinkShares::share(const Link& link) const {
  const auto found = shares_.find(link);
  if (found == shares_.end()) return 1;
  const std::vector<double>& shares = found->second;
  return std::accumulate(shares.begin(), shares.end(), 0.0) / static_cast<double>(shares.size());
}

std::uint32_t LinkShares::planes(const Link& link) const {
  const std::uint32_t every = (1U << static_cast<std::uint32_t>(cluster_.ports_per_nic)) - 1;
  const auto found = shares_.find(link);
  if (found == shares_.end()) return every;
  std::uint32_t up = 0;
  for (std::size_t plane = 0; plane < found->second.size(); ++plane) {
    if (!is_down(found->second[plane])) up |= 1U << plane;
  }
  return up;
}

std::uint32_t LinkShares::planes_between(const NicPlace& from, const NicPlace& to) const {
  std::uint32_t up = planes({DegradedLink::Kind::nic, 0, from.node, from.rail, LinkDirection::out}) &
                     planes({DegradedLink::Kind::nic, 0, to.node, to.rail, LinkDirection::in});
  for (std::size_t tier = 0; tier < cluster_.tiers.size(); ++tier) {
    const std::int64_t nodes = cluster_.nodes_per_unit(tier);
    if (from.node / nodes == to.node / nodes) break;
    const std::int64_t out = cluster_.rail_of(from.rail);
    const std::int64_t in = cluster_.rail_of(to.rail);
    up &= planes({DegradedLink::Kind::tier, tier, from.node / nodes, out, LinkDirection::out});
    up &= planes({DegradedLink::Kind::tier, tier, to.node / nodes, in, LinkDirection::in});
  }
  return up;
}

std::optional<CutOff> find_cut_off(const ClusterSpec& cluster) {
  const LinkShares shares(cluster);
  if (shares.all_up()) return std::nullopt;
  const std::vector<std::int64_t> nodes = witnesses(cluster);
  for (const std::int64_t from : nodes) {
    for (const std::int64_t to : nodes) {
      bool joined = from == to;
      for (std::int64_t rail = 0; rail < cluster.nics_per_node && !joined; ++rail) {
        joined = shares.planes_between({from, rail}, {to, rail}) != 0;
      }
      if (!joined) return CutOff{from, to};
    }
  }
  return std::nullopt;
}

}  // namespace hdpsim
