#include "sim/network/cluster_links.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/check.h"

namespace hdpsim {
namespace {

std::size_t unsigned_of(std::int64_t count) {
  return static_cast<std::size_t>(count);
}

// Far above any real rate, and low enough that sums of two do not overflow.
constexpr std::int64_t highest_rate = INT64_MAX / 2;

Bandwidth product(Bandwidth rate, std::int64_t links) {
  const Int128 exact = Int128{rate.bytes_per_second()} * links;
  return Bandwidth::bytes_per_second(exact > highest_rate ? highest_rate : static_cast<std::int64_t>(exact));
}

// What the uplink of a full unit carries; exact without oversubscription, so that it then never seems to bind.
Bandwidth uplink_rate(const SwitchTier& tier, Bandwidth below) {
  const Bandwidth full = product(below, tier.fan_in);
  return tier.oversubscription == 1 ? full : full.scaled(1 / tier.oversubscription);
}

std::int64_t units_of(std::int64_t nodes, std::int64_t nodes_per_unit) {
  return (nodes + nodes_per_unit - 1) / nodes_per_unit;
}

}  // namespace

ClusterLinks::ClusterLinks(const ClusterSpec& cluster, const LinkEfficiency& efficiency)
    : cluster_(cluster),
      efficiency_(efficiency),
      nvlink_rate_(cluster.nvlink.scaled(efficiency.nvlink)),
      nic_rate_(cluster.nic.scaled(efficiency.network)) {
  HDPSIM_CHECK(cluster.devices > 0 && cluster.devices % cluster.devices_per_node == 0, "{} devices in nodes of {}",
               cluster.devices, cluster.devices_per_node);
  HDPSIM_CHECK(efficiency.nvlink > 0 && efficiency.network > 0, "efficiencies {} and {}", efficiency.nvlink,
               efficiency.network);
  cluster_.speed.clear();
  if (cluster.devices_per_node > 1) count_ += 2 * unsigned_of(cluster.devices);
  first_nic_link_ = count_;
  if (cluster.nodes() > 1) {
    count_ += 2 * unsigned_of(cluster.nodes() * cluster.nics_per_node);
    add_tier_links();
  }
  degrade();
}

void ClusterLinks::add_tier_links() {
  Bandwidth below = nic_rate_;        // One link from a unit of the tier below, as it is built ...
  Bandwidth most_from_below = below;  // ... and the most that can ever come over it.
  for (std::size_t tier = 0; tier < cluster_.tiers.size(); ++tier) {
    const std::int64_t nodes_per_unit = cluster_.nodes_per_unit(tier);
    const std::int64_t units = units_of(cluster_.nodes(), nodes_per_unit);
    if (units == 1) return;
    const Bandwidth uplink = uplink_rate(cluster_.tiers[tier], below);
    const Bandwidth most = product(most_from_below, cluster_.tiers[tier].fan_in);
    if (most > uplink || is_degraded(tier)) {
      tier_links_.push_back({.tier = tier, .first = count_, .units = unsigned_of(units), .rate = uplink});
      count_ += 2 * unsigned_of(units * cluster_.nics_per_node);
    }
    below = uplink;
    most_from_below = std::min(most, uplink);
  }
}

bool ClusterLinks::is_degraded(std::size_t tier) const {
  return std::any_of(cluster_.degraded.begin(), cluster_.degraded.end(), [&](const DegradedLink& link) {
    return link.kind == DegradedLink::Kind::tier && link.tier == tier;
  });
}

void ClusterLinks::degrade() {
  const std::size_t rails = unsigned_of(cluster_.nics_per_node);
  for (const DegradedLink& link : cluster_.degraded) {
    const std::size_t unit = unsigned_of(link.unit);
    const std::size_t index = unsigned_of(link.index);
    std::size_t id = link.direction == LinkDirection::out ? 0 : 1;
    switch (link.kind) {
      case DegradedLink::Kind::nvlink:
        id += 2 * (unit * unsigned_of(cluster_.devices_per_node) + index);
        break;
      case DegradedLink::Kind::nic:
        id += first_nic_link_ + 2 * (unit * rails + index);
        break;
      case DegradedLink::Kind::tier:
        const auto links = std::find_if(tier_links_.begin(), tier_links_.end(),
                                        [&](const TierLinks& known) { return known.tier == link.tier; });
        HDPSIM_CHECK(links != tier_links_.end(), "tier {} has no links to degrade", link.tier);
        id += links->first + 2 * (unit * rails + index);
        break;
    }
    degraded_.insert_or_assign(LinkId(id), nominal_rate(parts(LinkId(id))).scaled(link.factor));
  }
}

Bandwidth ClusterLinks::slowest_between_nodes(NodeId first, NodeId last) const {
  Bandwidth slowest = nic_rate_;
  const auto within = [&](const Parts& part) {
    const std::size_t nodes =
        part.kind == Kind::tier ? unsigned_of(cluster_.nodes_per_unit(tier_links_[part.tier_links].tier)) : 1;
    return part.unit >= first.index() / nodes && part.unit <= last.index() / nodes;
  };
  for (const auto& [link, rate] : degraded_) {
    const Parts part = parts(link);
    if (part.kind != Kind::nvlink && within(part)) slowest = std::min(slowest, rate);
  }
  return slowest;
}

Bandwidth ClusterLinks::slowest_in_nodes(NodeId first, NodeId last) const {
  Bandwidth slowest = nvlink_rate_;
  for (const auto& [link, rate] : degraded_) {
    const Parts part = parts(link);
    const std::size_t node = part.unit / unsigned_of(cluster_.devices_per_node);
    if (part.kind == Kind::nvlink && node >= first.index() && node <= last.index()) slowest = std::min(slowest, rate);
  }
  return slowest;
}

Route ClusterLinks::route(DeviceId from, DeviceId to) const {
  const std::size_t devices = unsigned_of(cluster_.devices);
  HDPSIM_CHECK(from != to && from.index() < devices && to.index() < devices, "a route from device {} to {} of {}",
               from.index(), to.index(), devices);
  return cluster_.node_of(from) == cluster_.node_of(to) ? route_in_node(from, to) : route_between_nodes(from, to);
}

Route ClusterLinks::route_in_node(DeviceId from, DeviceId to) const {
  Route route;
  route.latency = efficiency_.nvlink_latency + cluster_.nvlink_latency;
  append(route, 2 * from.index());
  append(route, 2 * to.index() + 1);
  return route;
}

Route ClusterLinks::route_between_nodes(DeviceId from, DeviceId to) const {
  const NodeId from_node = cluster_.node_of(from);
  const NodeId to_node = cluster_.node_of(to);
  const std::size_t top = turn_around_tier(from_node, to_node);
  const std::size_t rails = unsigned_of(cluster_.nics_per_node);
  const std::size_t from_nic = unsigned_of(cluster_.nic_of(from));
  const std::size_t to_nic = unsigned_of(cluster_.nic_of(to));

  Route route;
  route.latency = efficiency_.network_latency + cluster_.tiers[top].latency;
  append(route, first_nic_link_ + 2 * from_nic);
  for (const TierLinks& links : tier_links_) {
    if (links.tier >= top) break;
    const std::size_t nodes_per_unit = unsigned_of(cluster_.nodes_per_unit(links.tier));
    const std::size_t up = from_node.index() / nodes_per_unit * rails + from_nic % rails;
    const std::size_t down = to_node.index() / nodes_per_unit * rails + to_nic % rails;
    append(route, links.first + 2 * up);
    append(route, links.first + 2 * down + 1);
  }
  append(route, first_nic_link_ + 2 * to_nic + 1);
  return route;
}

std::size_t ClusterLinks::turn_around_tier(NodeId from, NodeId to) const {
  for (std::size_t tier = 0; tier < cluster_.tiers.size(); ++tier) {
    const std::size_t nodes_per_unit = unsigned_of(cluster_.nodes_per_unit(tier));
    if (from.index() / nodes_per_unit == to.index() / nodes_per_unit) return tier;
  }
  HDPSIM_CHECK(false, "no tier joins nodes {} and {}", from.index(), to.index());
}

void ClusterLinks::append(Route& route, std::size_t link) const {
  const Bandwidth rate = this->rate(LinkId(link));
  route.alone = route.link_count == 0 ? rate : std::min(route.alone, rate);
  route.links.at(route.link_count++) = LinkId(link);
}

ClusterLinks::Parts ClusterLinks::parts(LinkId link) const {
  const std::size_t index = link.index();
  HDPSIM_CHECK(index < count_, "link {} of {}", index, count_);
  if (index < first_nic_link_) return {Kind::nvlink, 0, index / 2, 0, index % 2};
  const auto above = std::find_if(tier_links_.rbegin(), tier_links_.rend(),
                                  [&](const TierLinks& links) { return index >= links.first; });
  const std::size_t rails = unsigned_of(cluster_.nics_per_node);
  if (above == tier_links_.rend()) {
    const std::size_t nic = (index - first_nic_link_) / 2;
    return {Kind::nic, 0, nic / rails, nic % rails, (index - first_nic_link_) % 2};
  }
  const std::size_t within = index - above->first;
  return {Kind::tier, static_cast<std::size_t>(above.base() - tier_links_.begin()) - 1, within / 2 / rails,
          within / 2 % rails, within % 2};
}

Bandwidth ClusterLinks::rate(LinkId link) const {
  if (!degraded_.empty()) {
    const auto found = degraded_.find(link);
    if (found != degraded_.end()) return found->second;
  }
  return nominal_rate(parts(link));
}

Bandwidth ClusterLinks::nominal_rate(const Parts& part) const {
  if (part.kind == Kind::nvlink) return nvlink_rate_;
  return part.kind == Kind::nic ? nic_rate_ : tier_links_[part.tier_links].rate;
}

std::string ClusterLinks::name(LinkId link) const {
  const Parts part = parts(link);
  if (part.kind == Kind::tier) {
    const std::string& tier = cluster_.tiers[tier_links_[part.tier_links].tier].name;
    return fmt::format("{} {} rail {} {}", tier, part.unit, part.rail, part.direction == 0 ? "up" : "down");
  }
  const std::string_view direction = part.direction == 0 ? "out" : "in";
  if (part.kind == Kind::nic) return fmt::format("node {} nic {} {}", part.unit, part.rail, direction);
  const std::size_t devices_per_node = unsigned_of(cluster_.devices_per_node);
  return fmt::format("node {} gpu {} nvlink {}", part.unit / devices_per_node, part.unit % devices_per_node, direction);
}

bool ClusterLinks::has_one_owner(LinkId link) const {
  const Kind kind = parts(link).kind;
  return kind == Kind::nvlink || (kind == Kind::nic && cluster_.devices_per_nic() == 1);
}

std::vector<LinkInfo> ClusterLinks::list() const {
  std::vector<LinkInfo> all;
  all.reserve(count_);
  for (std::size_t index = 0; index < count_; ++index) {
    const LinkId link(index);
    all.push_back({link, name(link), rate(link)});
  }
  return all;
}

}  // namespace hdpsim
