#include "sim/network/pool_collective.h"

#include <algorithm>

namespace hdpsim {
namespace {

bool any_spans_nodes(const ClusterSpec& cluster, const DeviceSets& pools) {
  return std::any_of(pools.begin(), pools.end(), [&](const std::vector<DeviceId>& devices) {
    const NodeId first = cluster.node_of(devices.front());
    return std::any_of(devices.begin(), devices.end(), [&](DeviceId d) { return cluster.node_of(d) != first; });
  });
}

CollectivePlan plan_of(const ClusterLinks& links, const DeviceSets& sets, CollectiveKind kind) {
  const bool exchanges = kind == CollectiveKind::all_to_all;
  CollectivePlanner planner(links);
  std::vector<CollectivePlan> plans;
  plans.reserve(sets.size());
  for (const std::vector<DeviceId>& devices : sets) {
    plans.push_back(
        planner.plan(kind, exchanges ? CollectiveAlgorithm::direct : CollectiveAlgorithm::hierarchical, devices));
  }
  return together(plans);
}

// The devices of a stage, rank by rank.
std::vector<DeviceId> devices_of_stage(const Mesh& mesh, const Placement& placement, std::int64_t stage) {
  std::vector<DeviceId> devices;
  devices.reserve(static_cast<std::size_t>(mesh.hdp * mesh.tp));
  for (std::int64_t rank = 0; rank < mesh.hdp; ++rank) {
    for (std::int64_t shard = 0; shard < mesh.tp; ++shard) {
      devices.push_back(placement.device(HdpRank(static_cast<std::size_t>(rank)), stage, shard));
    }
  }
  return devices;
}

}  // namespace

DeviceSets pools(const Mesh& mesh, const Placement& placement) {
  DeviceSets all;
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

DeviceSets expert_groups(const Mesh& mesh, const Placement& placement) {
  const auto ep = static_cast<std::ptrdiff_t>(mesh.ep);
  DeviceSets groups;
  for (std::int64_t stage = 0; stage < mesh.pp; ++stage) {
    const std::vector<DeviceId> devices = devices_of_stage(mesh, placement, stage);
    for (auto first = devices.begin(); first != devices.end(); first += ep) groups.emplace_back(first, first + ep);
  }
  return groups;
}

DeviceSets expert_pools(const Mesh& mesh, const Placement& placement) {
  const auto ep = static_cast<std::size_t>(mesh.ep);
  DeviceSets all;
  for (std::int64_t stage = 0; stage < mesh.pp; ++stage) {
    const std::vector<DeviceId> devices = devices_of_stage(mesh, placement, stage);
    for (std::size_t place = 0; place < ep; ++place) {
      std::vector<DeviceId>& same = all.emplace_back();
      for (std::size_t i = place; i < devices.size(); i += ep) same.push_back(devices[i]);
    }
  }
  return all;
}

CollectivePlan pool_plan(const ClusterLinks& links, const Mesh& mesh, const Placement& placement) {
  return mesh.hdp == 1 ? CollectivePlan{} : plan_of(links, pools(mesh, placement), CollectiveKind::all_gather);
}

PoolCollective::PoolCollective(const ClusterLinks& links, const CollectiveEfficiency& efficiency,
                               const DeviceSets& sets, CollectiveKind kind) {
  if (sets.front().size() == 1) return;
  const CollectivePlan plan = plan_of(links, sets, kind);
  fixed_ = (any_spans_nodes(links.cluster(), sets) ? efficiency.network_start : efficiency.nvlink_start) + plan.latency;
  seconds_a_byte_ = hdpsim::seconds_a_byte(plan, links);
}

Duration PoolCollective::operator()(Bytes bytes) const {
  return fixed_ + Duration::seconds(static_cast<double>(bytes.count()) * seconds_a_byte_);
}

}  // namespace hdpsim
