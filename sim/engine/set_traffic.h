#pragma once

#include <cstdint>
#include <vector>

#include "sim/network/collective_model.h"

namespace hdpsim {

/// Sets of a job's devices that run collectives.
enum class TrafficSets : std::uint8_t {
  tensor_parallel,  ///< The tp devices of each rank's stage.
  experts,          ///< Expert groups.
  experts_by_node,  ///< Of expert groups, the devices in the same place of their nodes (NodeExchange) ...
  experts_in_node,  ///< ... and the devices in the same node.
  pool,             ///< The devices that hold the same shard.
  shard_groups,     ///< Of a pool, the devices of each group that shards states (HybridSharding) ...
  shard_replicas,   ///< ... and those that hold the same shard of different groups.
  expert_pools,     ///< The devices that hold the same experts.
};
inline constexpr std::size_t traffic_sets = 8;

/// What a device sends in collectives of one kind by one algorithm.
struct SetTraffic {
  TrafficSets sets = TrafficSets::tensor_parallel;
  CollectiveKind kind = CollectiveKind::all_gather;
  CollectiveAlgorithm algorithm = {};
  AsMessages as_messages = {};
  double bytes = 0;  ///< As nccl-tests counts them, times the bytes on the wire per byte.

  /// Whether other traffic loads the same links in the same way.
  [[nodiscard]] bool is_like(const SetTraffic& other) const {
    return sets == other.sets && kind == other.kind && algorithm == other.algorithm && as_messages == other.as_messages;
  }
};

/// The collectives of a pass.
struct PassTraffic {
  std::vector<SetTraffic> sets;
  std::vector<std::int64_t> share_runs;  ///< By MicroBatchProgram::shares: how often it runs.
};

}  // namespace hdpsim
