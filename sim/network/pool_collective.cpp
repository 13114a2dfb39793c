#include "sim/network/pool_collective.h"

#include <algorithm>

namespace hdpsim {
namespace {

using Pools = std::vector<std::vector<DeviceId>>;

bool any_spans_nodes(const ClusterSpec& cluster, const Pools& pools) {
  return std::any_of(pools.begin(), pools.end(), [&](const std::vector<DeviceId>& devices) {
    const NodeId first = cluster.node_of(devices.front());
    return std::any_of(devices.begin(), devices.end(), [&](DeviceId d) { return cluster.node_of(d) != first; });
  });
}

CollectivePlan plan_of(const ClusterLinks& links, const Pools& pools) {
  CollectivePlanner planner(links);
  std::vector<CollectivePlan> plans;
  plans.reserve(pools.size());
  for (const std::vector<DeviceId>& devices : pools) {
    plans.push_back(planner.plan(CollectiveKind::all_gather, CollectiveAlgorithm::hierarchical, devices));
  }
  return together(plans);
}

}  // namespace

std::vector<std::vector<DeviceId>> pools(const Mesh& mesh, const Placement& placement) {
  std::vector<std::vector<DeviceId>> all;
  for (std::int64_t stage = 0; stage < mesh.pp; ++stage) {
    for (std::int64_t shard = 0; shard < mesh.tp; ++shard) {
      std::vector<DeviceId>& devices = all.emplace_back();
      for (std::int64_t rank = 0; rank < mesh.hdp; ++rank) {
        devices.push_back(placement.device(HdpRank(static_cast<std::size_t>(rank)), stage, shard));
      }
    }
  }
  return all;
}

CollectivePlan pool_plan(const ClusterLinks& links, const Mesh& mesh, const Placement& placement) {
  return mesh.hdp == 1 ? CollectivePlan{} : plan_of(links, pools(mesh, placement));
}

PoolCollective::PoolCollective(const ClusterLinks& links, const CollectiveEfficiency& efficiency, const Mesh& mesh,
                               const Placement& placement) {
  if (mesh.hdp == 1) return;
  const Pools all = pools(mesh, placement);
  const CollectivePlan plan = plan_of(links, all);
  fixed_ = (any_spans_nodes(links.cluster(), all) ? efficiency.network_start : efficiency.nvlink_start) + plan.latency;
  seconds_a_byte_ = hdpsim::seconds_a_byte(plan, links);
}

Duration PoolCollective::operator()(Bytes bytes) const {
  return fixed_ + Duration::seconds(static_cast<double>(bytes.count()) * seconds_a_byte_);
}

}  // namespace hdpsim
