#include "sim/network/collective_plan.h"

#include <algorithm>
#include <utility>

#include "sim/base/check.h"
#include "sim/network/impl/algorithms.h"

namespace hdpsim {
namespace {

// Visits the flows of all parts on each link, per byte of the collective's size.
template <class Visit>
void for_each_load(const CollectivePlan& plan, const Visit& visit) {
  for (const CollectivePlan::Part& part : plan.parts) {
    for (const FairShare::Load& load : part) visit(load.link, load.flows * plan.bytes_per_flow);
  }
}

CollectivePlan with_flows_times(double factor, CollectivePlan plan) {
  for (CollectivePlan::Part& part : plan.parts) {
    for (FairShare::Load& load : part) load.flows *= factor;
  }
  return plan;
}

}  // namespace

CollectivePlan plan_collective(const ClusterLinks& links, CollectiveKind kind, CollectiveAlgorithm algorithm,
                               std::span<const DeviceId> devices, PlanGrain grain) {
  const MembersByNode members(links.cluster(), devices);
  const PlanTask task{kind, members, devices};
  return algorithms.at(static_cast<std::size_t>(algorithm)).plan(CollectivePlanBuilder(links, grain), task);
}

std::vector<DeviceId> consecutive_devices(std::int64_t first, std::int64_t count) {
  std::vector<DeviceId> devices;
  devices.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) devices.emplace_back(static_cast<std::size_t>(first + i));
  return devices;
}

CollectivePlan together(std::span<const CollectivePlan> plans) {
  HDPSIM_CHECK(!plans.empty(), "no plans");
  CollectivePlan all = plans.front();
  for (const CollectivePlan& plan : plans.subspan(1)) {
    CollectivePlan next = with_flows_times(plan.bytes_per_flow / all.bytes_per_flow, plan);
    std::move(next.parts.begin(), next.parts.end(), std::back_inserter(all.parts));
    all.latency = std::max(all.latency, plan.latency);
    all.hop_inside = std::max(all.hop_inside, plan.hop_inside);
    all.hop_between = std::max(all.hop_between, plan.hop_between);
  }
  return all;
}

CollectivePlan with_overhead(CollectivePlan plan, double wire_bytes) {
  plan.bytes_per_flow *= wire_bytes;
  return plan;
}

std::vector<double> link_bytes(const CollectivePlan& plan, std::size_t link_count) {
  std::vector<double> bytes(link_count);
  for_each_load(plan, [&](FairShare::Link link, double amount) { bytes[link] += amount; });
  return bytes;
}

FullestLinks fullest_links(const CollectivePlan& plan, const ClusterLinks& links) {
  FullestLinks fullest;
  const auto count = [&](std::size_t link, double amount) {
    double& longest = links.is_inside_node(LinkId(link)) ? fullest.inside_s : fullest.between_s;
    longest = std::max(longest, amount / static_cast<double>(links.rate(LinkId(link)).bytes_per_second()));
  };
  if (plan.parts.size() == 1) {
    for_each_load(plan, count);
    return fullest;
  }
  std::size_t carried = 0;
  for (const CollectivePlan::Part& part : plan.parts) carried += part.size();
  if (constexpr std::size_t few = 8; carried >= links.count() / few) {
    const std::vector<double> bytes = link_bytes(plan, links.count());
    for (std::size_t link = 0; link < bytes.size(); ++link) {
      if (bytes[link] > 0) count(link, bytes[link]);
    }
    return fullest;
  }
  std::vector<std::pair<FairShare::Link, double>> loads;
  for_each_load(plan, [&](FairShare::Link link, double amount) { loads.emplace_back(link, amount); });
  std::stable_sort(loads.begin(), loads.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < loads.size();) {
    const FairShare::Link link = loads[i].first;
    double amount = 0;
    for (; i < loads.size() && loads[i].first == link; ++i) amount += loads[i].second;
    count(link, amount);
  }
  return fullest;
}

double seconds_a_byte(const CollectivePlan& plan, const ClusterLinks& links) {
  const FullestLinks fullest = fullest_links(plan, links);
  return std::max(fullest.inside_s, fullest.between_s);
}

std::vector<Transfer> transfers_of(const CollectivePlan& plan, double bytes, double most) {
  std::vector<Transfer> transfers;
  for (const CollectivePlan::Part& part : plan.parts) {
    transfers.push_back(
        {.links = {}, .bytes = bytes * plan.bytes_per_flow, .loads = part, .cap = most * plan.bytes_per_flow});
  }
  return transfers;
}

}  // namespace hdpsim
