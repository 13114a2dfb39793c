#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "sim/engine/machine.h"
#include "sim/model/transformer.h"
#include "sim/network/collective_model.h"
#include "sim/network/network_model.h"
#include "sim/program/instruction.h"
#include "sim/program/pipeline.h"

namespace hdpsim {

/// Sets of a job's devices that run collectives.
enum class TrafficSets : std::uint8_t {
  tensor_parallel,        ///< The tp devices of each rank's stage.
  experts,                ///< Expert groups.
  expert_cuts,            ///< The devices that cut the same experts.
  experts_by_node,        ///< Of expert groups, the devices in the same place of their nodes (NodeExchange) ...
  experts_in_node,        ///< ... and the devices in the same node.
  pool,                   ///< The devices that hold the same shard.
  shard_groups,           ///< Of a pool, the devices of each group that shards states (HybridSharding) ...
  shard_replicas,         ///< ... and those that hold the same shard of different groups.
  expert_pools,           ///< The devices that hold the same experts ...
  expert_shard_groups,    ///< ... those of them that shard states ...
  expert_shard_replicas,  ///< ... and those that hold the same shard of the same experts.
};
inline constexpr std::size_t traffic_sets = 11;

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

class GroupCollectives;
class NodeExchange;

/// The links that the collectives of a job load. It asks the models that price them, so that bytes cross the links of
/// the algorithm that was priced.
class CollectiveTraffic {
 public:
  using Model = std::shared_ptr<const CollectiveModel>;

  /// `groups` have the collectives within the groups of micro-batches.
  explicit CollectiveTraffic(std::shared_ptr<GroupCollectives> groups) : groups_(std::move(groups)) {}

  /// The model that prices collectives in these sets. `of_all` makes that of all sets of the job, where one represents
  /// all in the prices; if empty, `price` has all of them.
  void set(TrafficSets sets, Model price, std::function<Model()> of_all = {});

  /// A collective of `bytes` as a part of one of at least `bucket`; nothing where the job has no such sets.
  void add(std::vector<SetTraffic>& traffic, TrafficSets sets, CollectiveKind kind, Bytes bytes, double times = 1,
           Bytes bucket = {}) const;
  /// All-to-alls in expert groups that send a token once to each node.
  void set_exchange(std::shared_ptr<const NodeExchange> exchange);
  void add_exchange(std::vector<SetTraffic>& traffic, const MixtureOfExperts& moe, Bytes tokens, double times) const;
  /// The reduction of gradients over the pools, and the all-gather of parameters.
  void add_reduction(std::vector<SetTraffic>& traffic, const PoolBytes& gradients, bool all_reduce, double times = 1,
                     const PoolBytes& bucket = {}) const;
  void add_gather(std::vector<SetTraffic>& traffic, const PoolBytes& parameters, double times = 1,
                  const PoolBytes& bucket = {}) const;

  /// Adds what a collective within a group sends `times` times.
  void add_sharing(const SharingRanks& ranks, const SharingCollective& collective, double times,
                   LinkTraffic& links) const;
  /// The load of a collective on the links, with one part per set.
  [[nodiscard]] const CollectivePlan& plan(const SetTraffic& traffic) const;
  /// The links that these sets load.
  [[nodiscard]] const ClusterLinks& links(const SetTraffic& traffic) const;

 private:
  struct Models {
    Model price;
    std::function<Model()> of_all;
    Model all;  ///< Made when it is first asked for.
  };

  struct PoolSets;
  void add_reduction(std::vector<SetTraffic>& traffic, const PoolSets& of, Bytes gradients, bool all_reduce,
                     double times, Bytes bucket) const;
  void add_gather(std::vector<SetTraffic>& traffic, const PoolSets& of, Bytes parameters, double times,
                  Bytes bucket) const;

  std::shared_ptr<GroupCollectives> groups_;
  std::shared_ptr<const NodeExchange> exchange_;
  mutable std::array<Models, traffic_sets> models_;
};

/// Counts what the collectives of a job's steps send. Of sets that span ranks, all are taken to send as much as the
/// average rank, of a pool the average rank of its stage.
class TrafficCount {
 public:
  /// `traffic` may be null: then nothing is counted.
  TrafficCount(const CollectiveTraffic* traffic, const Mesh& mesh);

  /// Adds `share` of this traffic of each of the workers.
  void add(std::span<const SetTraffic> traffic, std::span<const WorkerId> workers, double share = 1);
  [[nodiscard]] const CollectiveTraffic* traffic() const { return traffic_; }
  /// Adds all that was counted.
  void add_to(LinkTraffic& links) const;

 private:
  struct Count {
    SetTraffic of;              ///< Its bytes do not matter.
    std::vector<double> bytes;  ///< By worker.
  };
  [[nodiscard]] Count& count_of(const SetTraffic& traffic);
  [[nodiscard]] std::vector<double> bytes_of_sets(const Count& count, std::size_t sets) const;

  const CollectiveTraffic* traffic_;
  std::size_t workers_;
  std::size_t stages_;
  std::size_t shards_;
  std::vector<Count> counts_;
};

}  // namespace hdpsim
