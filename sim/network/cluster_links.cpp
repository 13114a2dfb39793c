#include "sim/network/cluster_links.h"

#include <fmt/format.h>
#include <algorithm>
#include <cctype>

#include "sim/base/check.h"

namespace hdpsim {

LinkEfficiency message_efficiency(const DeviceProfile& profile) {
  LinkEfficiency efficiency;
  if (profile.nvlink && profile.nvlink->send_recv) {
    efficiency.nvlink = profile.nvlink->send_recv->efficiency();
    efficiency.nvlink_latency = profile.nvlink->send_recv->latency;
  }
  if (profile.network && profile.network->send_recv) {
    efficiency.network = profile.network->send_recv->efficiency();
    efficiency.network_latency = profile.network->send_recv->latency;
  }
  return slowed(efficiency, profile.factors[CostFamily::messages]);
}

LinkEfficiency slowed(LinkEfficiency efficiency, double factor) {
  if (factor == 1) return efficiency;
  efficiency.nvlink = std::min(1.0, efficiency.nvlink / factor);
  efficiency.network = std::min(1.0, efficiency.network / factor);
  efficiency.nvlink_latency = efficiency.nvlink_latency.scaled(factor);
  efficiency.network_latency = efficiency.network_latency.scaled(factor);
  return efficiency;
}

ClusterLinks::ClusterLinks(const ClusterSpec& cluster, const LinkEfficiency& efficiency)
    : cluster_(cluster),
      efficiency_(efficiency),
      shares_(cluster),
      device_rate_((cluster.has_nvlink() ? cluster.nvlink : cluster.pcie).scaled(efficiency.nvlink)),
      nic_rate_(cluster.nic.scaled(efficiency.network)) {
  HDPSIM_CHECK(cluster.devices > 0 && cluster.devices % cluster.devices_per_node == 0, "{} devices in nodes of {}",
               cluster.devices, cluster.devices_per_node);
  HDPSIM_CHECK(efficiency.nvlink > 0 && efficiency.network > 0, "efficiencies {} and {}", efficiency.nvlink,
               efficiency.network);
  cluster_.speed.clear();
  if (cluster.devices_per_node > 1) count_ += 2 * unsigned_of(cluster.devices);
  first_pcie_switch_link_ = count_;
  if (cluster.devices_per_node > 1 && !cluster.has_nvlink() && cluster.devices_per_pcie_uplink > 1) {
    count_ += 2 * unsigned_of(cluster.devices / cluster.devices_per_pcie_uplink);
  }
  first_nic_link_ = count_;
  if (cluster.nodes() > 1) {
    count_ += 2 * unsigned_of(cluster.nodes() * cluster.nics_per_node);
    fabric_ = make_fabric(cluster, efficiency.network);
  }
  first_fabric_link_ = count_;
  if (fabric_ != nullptr) {
    count_ += fabric_->link_count();
    passes_other_devices_ = !shares_.all_up() || has_rails_apart();
  }
  degrade();
}

bool ClusterLinks::has_rails_apart() const {
  const std::size_t rails = unsigned_of(cluster_.nics_per_node);
  for (std::size_t rail = 1; rail < rails; ++rail) {
    if (!fabric_->joins_rails(0, rail)) return true;
  }
  return false;
}

void ClusterLinks::degrade() {
  for (const auto& [link, ports] : shares_.named()) {
    std::size_t id = link.direction == LinkDirection::out ? 0 : 1;
    switch (link.kind) {
      case DegradedLink::Kind::nvlink:
        id += 2 * unsigned_of(link.unit * cluster_.devices_per_node + link.index);
        break;
      case DegradedLink::Kind::nic:
        id += first_nic_link_ + 2 * unsigned_of(link.unit * cluster_.nics_per_node + link.index);
        break;
      case DegradedLink::Kind::tier:
        continue;  // the fabric handles these
    }
    degraded_.emplace(LinkId(id),
                      std::max(rate_of_down_link, nominal_rate(parts(LinkId(id))).scaled(shares_.share(link))));
  }
}

Route ClusterLinks::route(DeviceId from, DeviceId to) const {
  const std::size_t devices = unsigned_of(cluster_.devices);
  HDPSIM_CHECK(from != to && from.index() < devices && to.index() < devices, "a route from device {} to {} of {}",
               from.index(), to.index(), devices);
  Route route;
  if (cluster_.node_of(from) == cluster_.node_of(to)) {
    append_in_node(route, from, to);
  } else {
    append_between_nodes(route, from, to,
                         rails_between(unsigned_of(cluster_.nic_of(from)), unsigned_of(cluster_.nic_of(to))));
  }
  return route;
}

std::vector<Route> ClusterLinks::routes_by_all_nics(DeviceId from, DeviceId to) const {
  const std::size_t from_node = cluster_.node_of(from).index();
  const std::size_t to_node = cluster_.node_of(to).index();
  std::vector<Route> routes;
  if (from_node != to_node) {
    for (std::size_t rail = 0; rail < unsigned_of(cluster_.nics_per_node); ++rail) {
      if (is_up(from_node, to_node, {rail, rail})) append_between_nodes(routes.emplace_back(), from, to, {rail, rail});
    }
  }
  if (routes.size() < 2) return {route(from, to)};
  return routes;
}

std::optional<std::vector<LinkFlows>> ClusterLinks::all_pairs(std::span<const DeviceId> devices) const {
  if (!shares_.all_up()) return std::nullopt;  // messages go around what is down
  const std::size_t rails = unsigned_of(cluster_.nics_per_node);
  const std::size_t rail = unsigned_of(cluster_.nic_of(devices.front())) % rails;
  std::vector<std::size_t> nodes;
  std::vector<LinkFlows> loads;
  for (const DeviceId device : devices) {
    const std::size_t nic = unsigned_of(cluster_.nic_of(device));
    if (nic % rails != rail) return std::nullopt;
    nodes.push_back(nic / rails);
    const auto others = static_cast<double>(devices.size() - 1);
    loads.push_back({LinkId(first_nic_link_ + 2 * nic), others});
    loads.push_back({LinkId(first_nic_link_ + 2 * nic + 1), others});
  }
  const auto of_fabric = fabric_->all_pairs(nodes, rail);
  if (!of_fabric) return std::nullopt;
  for (const FabricLoad& load : *of_fabric) loads.push_back({LinkId(first_fabric_link_ + load.link), load.flows});
  return loads;
}

void ClusterLinks::append_in_node(Route& route, DeviceId from, DeviceId to) const {
  route.latency += efficiency_.nvlink_latency + cluster_.nvlink_latency;
  append(route, 2 * from.index());
  if (first_nic_link_ > first_pcie_switch_link_) {
    const std::size_t from_switch = from.index() / unsigned_of(cluster_.devices_per_pcie_uplink);
    const std::size_t to_switch = to.index() / unsigned_of(cluster_.devices_per_pcie_uplink);
    if (from_switch != to_switch) {
      append(route, first_pcie_switch_link_ + 2 * from_switch);
      append(route, first_pcie_switch_link_ + 2 * to_switch + 1);
    }
  }
  append(route, 2 * to.index() + 1);
}

void ClusterLinks::append_between_nodes(Route& route, DeviceId from, DeviceId to, const Rails& rails) const {
  const std::size_t nics = unsigned_of(cluster_.nics_per_node);
  const std::size_t from_node = cluster_.node_of(from).index();
  const std::size_t to_node = cluster_.node_of(to).index();
  const DeviceId first = device_at(from_node, rails.from, from);
  const DeviceId last = device_at(to_node, rails.to, to);
  if (first != from) append_in_node(route, from, first);
  const FabricPath path = fabric_->path({from_node, rails.from}, {to_node, rails.to});
  route.latency += efficiency_.network_latency + path.latency;
  append(route, first_nic_link_ + 2 * (from_node * nics + rails.from));
  for (const auto& [link, share] : path.links.view()) append(route, first_fabric_link_ + link.index(), share);
  append(route, first_nic_link_ + 2 * (to_node * nics + rails.to) + 1);
  if (last != to) append_in_node(route, last, to);
}

bool ClusterLinks::is_up(std::size_t from_node, std::size_t to_node, const Rails& rails) const {
  if (shares_.all_up()) return true;
  return shares_.planes_between({static_cast<std::int64_t>(from_node), static_cast<std::int64_t>(rails.from)},
                                {static_cast<std::int64_t>(to_node), static_cast<std::int64_t>(rails.to)}) != 0;
}

ClusterLinks::Rails ClusterLinks::rails_between(std::size_t from_nic, std::size_t to_nic) const {
  const std::size_t nics = unsigned_of(cluster_.nics_per_node);
  Rails rails{from_nic % nics, to_nic % nics};
  if (!fabric_->joins_rails(rails.from, rails.to)) rails.from = rails.to;
  const std::size_t from_node = from_nic / nics;
  const std::size_t to_node = to_nic / nics;
  if (is_up(from_node, to_node, rails)) return rails;
  for (std::size_t next = 0; next < nics; ++next) {
    const std::size_t rail = (to_nic + next) % nics;
    if (is_up(from_node, to_node, {rail, rail})) return {rail, rail};
  }
  HDPSIM_CHECK(false, "no rail is up between nodes {} and {}", from_node, to_node);
}

// Returns `own` if it is on that rail, otherwise the first device of the node that is.
DeviceId ClusterLinks::device_at(std::size_t node, std::size_t rail, DeviceId own) const {
  const std::size_t nic = node * unsigned_of(cluster_.nics_per_node) + rail;
  return unsigned_of(cluster_.nic_of(own)) == nic ? own : DeviceId(nic * unsigned_of(cluster_.devices_per_nic()));
}

void ClusterLinks::append(Route& route, std::size_t link, double share) const {
  const Bandwidth own = rate(LinkId(link));
  const Bandwidth whole = share == 1 ? own : own.scaled(1 / share);
  route.alone = route.links.size() == 0 ? whole : std::min(route.alone, whole);
  route.links.append({LinkId(link), share});
}

ClusterLinks::Parts ClusterLinks::parts(LinkId link) const {
  const std::size_t index = link.index();
  HDPSIM_CHECK(index < count_, "link {} of {}", index, count_);
  if (index >= first_fabric_link_) return {Kind::fabric, index - first_fabric_link_, 0};
  const auto within = [&](Kind kind, std::size_t first) {
    return Parts{kind, (index - first) / 2, (index - first) % 2};
  };
  if (index >= first_nic_link_) return within(Kind::nic, first_nic_link_);
  return index >= first_pcie_switch_link_ ? within(Kind::pcie_switch, first_pcie_switch_link_)
                                          : within(Kind::device, 0);
}

std::size_t ClusterLinks::node_of(const Parts& part) const {
  HDPSIM_CHECK(part.kind != Kind::fabric, "link {} of the fabric belongs to no node", part.unit);
  const std::int64_t units_per_node = part.kind == Kind::nic ? cluster_.nics_per_node
                                      : part.kind == Kind::device
                                          ? cluster_.devices_per_node
                                          : cluster_.devices_per_node / cluster_.devices_per_pcie_uplink;
  return part.unit / unsigned_of(units_per_node);
}

Bandwidth ClusterLinks::rate(LinkId link) const {
  if (!degraded_.empty()) {
    const auto found = degraded_.find(link);
    if (found != degraded_.end()) return found->second;
  }
  return nominal_rate(parts(link));
}

Bandwidth ClusterLinks::nominal_rate(const Parts& part) const {
  if (part.kind == Kind::fabric) return fabric_->rate(part.unit);
  const NodeKind* kind = cluster_.kinds.empty() ? nullptr : cluster_.kind_of(NodeId(node_of(part)));
  if (part.kind == Kind::nic) return kind == nullptr ? nic_rate_ : kind->nic.scaled(efficiency_.network);
  const bool is_own = kind != nullptr && part.kind == Kind::device && cluster_.has_nvlink();
  return is_own ? kind->nvlink.scaled(efficiency_.nvlink) : device_rate_;
}

std::string ClusterLinks::name(LinkId link) const {
  const Parts part = parts(link);
  if (part.kind == Kind::fabric) return fabric_->name(part.unit);
  const std::size_t node = node_of(part);
  const std::string_view direction = part.direction == 0 ? "out" : "in";
  if (part.kind == Kind::nic) {
    return fmt::format("node {} nic {} {}", node, part.unit % unsigned_of(cluster_.nics_per_node), direction);
  }
  if (part.kind == Kind::pcie_switch) {
    const std::size_t switches = unsigned_of(cluster_.devices_per_node / cluster_.devices_per_pcie_uplink);
    return fmt::format("node {} pcie switch {} {}", node, part.unit % switches, direction);
  }
  return fmt::format("node {} gpu {} {} {}", node, part.unit % unsigned_of(cluster_.devices_per_node),
                     cluster_.has_nvlink() ? "nvlink" : "pcie", direction);
}

bool ClusterLinks::has_one_owner(LinkId link) const {
  if (passes_other_devices_) return false;
  const Kind kind = parts(link).kind;
  return kind == Kind::device || (kind == Kind::nic && cluster_.devices_per_nic() == 1);
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

std::string link_kind(std::string_view name) {
  std::string kind;
  for (const char c : name) {
    const bool is_digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (!is_digit) kind += c;
    if (is_digit && !kind.ends_with('#')) kind += '#';
  }
  return kind;
}

}  // namespace hdpsim
