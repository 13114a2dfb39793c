#include "sim/network/impl/collective_plan_builder.h"

#include <algorithm>
#include <utility>

#include "sim/base/check.h"

namespace hdpsim {
namespace {

// Zeros, one a link of the largest cluster so far: plans follow one another, and none touches all links.
thread_local std::vector<double> spare;

}  // namespace

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

}  // namespace hdpsim
