#include "sim/network/impl/collective_plan_builder.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

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

// Zeros, one a link of the largest cluster so far: plans follow one another, and none touches all links.
thread_local std::vector<double> spare;

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

CollectivePlanBuilder::CollectivePlanBuilder(const ClusterLinks& links, PlanGrain grain)
    : links_(links), grain_(grain), flows_(std::move(spare)) {
  if (flows_.size() < links.count()) flows_.resize(links.count());
}

CollectivePlanBuilder::~CollectivePlanBuilder() {
  if (flows_.empty()) return;  // moved from
  for (const FairShare::Link link : touched_) flows_[link] = 0;
  spare = std::move(flows_);
}

void CollectivePlanBuilder::send(DeviceId from, DeviceId to, double flows) {
  const Route route = watch(from, to);
  for (const auto& [link, share] : route.binding_links()) load(link, flows * share);
}

Route CollectivePlanBuilder::watch(DeviceId from, DeviceId to) {
  const Route route = links_.route(from, to);
  const bool stays = links_.cluster().node_of(from) == links_.cluster().node_of(to);
  Duration& longest = stays ? inside_ : between_;
  longest = std::max(longest, route.latency);
  return route;
}

void CollectivePlanBuilder::pass_nvswitch(std::span<const DeviceId> members, double out, double in) {
  HDPSIM_CHECK(links_.cluster().has_nvlink() && members.size() > 1, "an NVSwitch of {} devices", members.size());
  for (std::size_t place = 0; place < members.size(); ++place) {
    const Route to_next = watch(members[place], members[(place + 1) % members.size()]);
    load(to_next.binding_links().front().link, out);
    load(to_next.binding_links().back().link, in);
  }
}

void CollectivePlanBuilder::load(LinkId link, double flows) {
  double& sum = flows_[link.index()];
  if (sum == 0) touched_.push_back(static_cast<FairShare::Link>(link.index()));
  sum += flows;
}

void CollectivePlanBuilder::send_all_pairs(std::span<const DeviceId> devices, double flows) {
  const auto loads = grain_ == PlanGrain::whole ? links_.all_pairs(devices) : std::nullopt;
  if (loads) {
    // No two are farther apart than the first and the last: tiers are numbered from end to end.
    (void)watch(devices.front(), devices.back());
    for (const LinkFlows& one : *loads) load(one.link, one.flows * flows);
    return;
  }
  for (const DeviceId from : devices) {
    for (const DeviceId to : devices) {
      if (from == to) continue;
      send(from, to, flows);
      end_part();
    }
  }
}

void CollectivePlanBuilder::end_part() {
  if (grain_ == PlanGrain::parts) emit();
}

void CollectivePlanBuilder::emit() {
  if (touched_.empty()) return;
  std::sort(touched_.begin(), touched_.end());
  CollectivePlan::Part& part = plan_.parts.emplace_back();
  part.reserve(touched_.size());
  for (const FairShare::Link link : touched_) {
    part.push_back({link, flows_[link]});
    flows_[link] = 0;
  }
  touched_.clear();
}

CollectivePlan CollectivePlanBuilder::finish(double bytes_per_flow, const Steps& steps) {
  emit();
  plan_.bytes_per_flow = bytes_per_flow;
  plan_.hop_inside = inside_;
  plan_.hop_between = between_;
  plan_.latency =
      static_cast<std::int64_t>(steps.inside) * inside_ + static_cast<std::int64_t>(steps.between) * between_;
  return std::move(plan_);
}

void add_both_ways(CollectivePlanBuilder& builder, DeviceId one, DeviceId other, double flows) {
  builder.send(one, other, flows);
  builder.send(other, one, flows);
}

void add_chains(CollectivePlanBuilder& builder, std::span<const DeviceId> members, std::span<const std::uint32_t> ports,
                double flows) {
  if (members.size() == 1) return;
  for (std::size_t to = 0; to < members.size(); ++to) {
    const auto without = static_cast<std::size_t>(std::count(ports.begin(), ports.end(), to));
    const std::size_t chains = ports.size() - without;
    const std::size_t from = (to + members.size() - 1) % members.size();
    if (chains > 0) add_both_ways(builder, members[from], members[to], static_cast<double>(chains) * flows);
  }
}

void add_switch_tree(CollectivePlanBuilder& builder, const MembersByNode& members, std::size_t nic) {
  std::map<LinkId, double> used;
  const DeviceId root = members.port(0, nic);
  for (std::size_t node = 1; node < members.nodes(); ++node) {
    const DeviceId port = members.port(node, nic);
    for (const Route& route : {builder.watch(port, root), builder.watch(root, port)}) {
      for (const auto& [link, share] : route.binding_links()) used[link] = std::max(used[link], share);
    }
  }
  for (const auto& [link, share] : used) builder.load(link, share);
}

}  // namespace hdpsim
