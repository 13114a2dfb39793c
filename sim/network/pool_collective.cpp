#include "sim/network/pool_collective.h"

#include <algorithm>

namespace hdpsim {
namespace {

bool spans_nodes(const ClusterSpec& cluster, const std::vector<DeviceId>& devices) {
  return std::any_of(devices.begin(), devices.end(),
                     [&](DeviceId device) { return cluster.node_of(device) != cluster.node_of(devices.front()); });
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

PoolCollective::PoolCollective(const ClusterLinks& links, const CollectiveEfficiency& efficiency, const Mesh& mesh,
                               const Placement& placement) {
  if (mesh.hdp == 1) return;
  CollectivePlanner planner(links);
  std::vector<CollectivePlan> plans;
  bool any_spans_nodes = false;
  for (const std::vector<DeviceId>& devices : pools(mesh, placement)) {
    plans.push_back(planner.plan(CollectiveKind::all_gather, CollectiveAlgorithm::hierarchical, devices));
    any_spans_nodes = any_spans_nodes || spans_nodes(links.cluster(), devices);
  }
  const CollectivePlan all = together(plans);
  fixed_ = (any_spans_nodes ? efficiency.network_start : efficiency.nvlink_start) + all.latency;
  seconds_a_byte_ = hdpsim::seconds_a_byte(all, links);
}

Duration PoolCollective::operator()(Bytes bytes) const {
  return fixed_ + Duration::seconds(static_cast<double>(bytes.count()) * seconds_a_byte_);
}

}  // namespace hdpsim
