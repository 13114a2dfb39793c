#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "sim/base/units.h"
#include "sim/cluster/placement.h"
#include "sim/cost/cost_model.h"
#include "sim/cost/kernel_slowdown.h"
#include "sim/model/work.h"
#include "sim/network/collective_plan.h"
#include "sim/network/network_model.h"
#include "sim/plan/connection_table.h"

namespace hdpsim {

/// The costs of a first contact between ranks in a cold step. A cost that the profile does not state is 0.
struct SetUpCosts {
  Communicators communicators = Communicators::one;
  CommunicatorCost communicator;  ///< The tensor-parallel shards of a group create theirs at the same time.
  Duration first_contact;
};

/// The time of a collective of a kind and size in one group of the job's devices without other traffic on the links,
/// and its evidence. CollectiveModel answers, or a test with its own figures.
using Collective = std::function<Estimate(CollectiveKind, Bytes)>;

/// The ranks that run a collective of a micro-batch: those of its group on one stage, all together or in sub-groups of
/// `subgroup` consecutive ones at the same time.
struct SharingRanks {
  const std::vector<HdpRank>& group;
  std::int64_t stage = 0;
  std::int64_t subgroup = 1;
};
using SharingCosts = std::function<Estimate(const SharingRanks&, CollectiveKind, Bytes)>;

/// Collectives of a pool whose ranks shard states in groups (Mesh::shard_ranks).
struct HybridSharding {
  std::int64_t ranks = 0;  ///< Of a group: devices of the pool.
  Collective within;       ///< Among the ranks of a group, in all groups at once.
  Collective across;       ///< Among the ranks that hold the same shard, for all shards at once.
};

class CollectiveTraffic;

/// What the thread of a framework that issues kernels takes for each.
struct HostTimes {
  Duration issue;     ///< An operation of the framework, autograd included.
  Duration in_loop;   ///< Another kernel of a loop in C++.
  Duration narrow;    ///< A product in a narrow format, besides its kernels.
  Duration dispatch;  ///< An all-to-all of experts.

  [[nodiscard]] Duration of(const HostCalls& calls) const {
    return calls.kernels * issue + calls.in_loops * in_loop + calls.narrow * narrow + calls.dispatches * dispatch;
  }
};
/// Those of a profile: none if it does not say what an operation takes.
[[nodiscard]] HostTimes host_times(const Overheads& overheads);

/// The simulated cluster as one job sees it. The machines of concurrent jobs share one network. A network serves one
/// simulation at a time, because it holds the flows.
struct Machine {
  const CostModel* cost = nullptr;
  NetworkModel* network = nullptr;
  const Placement* placement = nullptr;
  std::int64_t tp = 1;
  NicUse ring_nics = NicUse::own;  ///< Of exchanges around rings.
  std::vector<double> speed;       ///< By worker: the speed of its slowest device relative to nominal.
  /// The number of workers that can compute at full speed at the same time; more of them share the processors evenly.
  /// Empty if all can. It serves to predict real ranks that run on fewer cores, in the exact fidelity only.
  std::optional<double> processors{};
  Bandwidth d2h;  ///< Copies from one device to host memory.
  Bandwidth h2d;  ///< Copies from host memory to one device.
  Duration micro_batch_overhead;
  Duration step_overhead;
  std::optional<SetUpCosts> set_up{};                ///< Costs in a cold step; empty in a warm one.
  std::optional<KernelSlowdown> overlap_slowdown{};  ///< Empty if unknown: kernels are then not slowed.
  HostTimes host{};                                  ///< Zero if kernels wait for no host.
  Collective tensor_parallel;                        ///< Collectives among the tp devices of a rank's stage.
  Collective pool;                         ///< Collectives over the devices of all ranks that hold the same shard.
  std::optional<HybridSharding> hybrid{};  ///< Empty where the whole pool shards its states.
  SharingCosts sharing{};    ///< Collectives in the group of a micro-batch; may be empty where keys go around rings.
  Collective experts{};      ///< Collectives in each expert group; this and the next three are empty where ep is 1.
  Collective expert_cuts{};  ///< Collectives among the devices that cut the same experts.
  /// All-to-alls in each expert group that send a token once to each node (TensorParallelCollective::once_per_node).
  std::function<Estimate(const MixtureOfExperts&, Bytes)> experts_per_node{};
  Collective expert_pools{};                      ///< Collectives over the devices that hold the same experts ...
  std::optional<HybridSharding> expert_hybrid{};  ///< ... and in groups of them, as `hybrid`.
  /// The load of a collective over the data-parallel group on the network, needed only where jobs share the network. If
  /// empty, these collectives do not load it.
  std::function<CollectivePlan(CollectiveKind, Bytes)> pool_flows;
  std::shared_ptr<const CollectiveTraffic> traffic{};  ///< The links that collectives load; null: they are not counted.
  /// Record Timeline::instructions, in the order in which they end. Only Grain::exact supports it.
  bool record_instructions = false;

  /// The speed of a worker while all workers compute.
  [[nodiscard]] double speed_among_all(std::size_t worker) const {
    const double share = processors ? std::min(1.0, *processors / static_cast<double>(speed.size())) : 1;
    return share * speed[worker];
  }
};

}  // namespace hdpsim
