#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "sim/base/units.h"
#include "sim/cluster/placement.h"
#include "sim/cost/cost_model.h"
#include "sim/cost/kernel_slowdown.h"
#include "sim/network/collective_plan.h"
#include "sim/network/network_model.h"
#include "sim/plan/connection_table.h"

namespace hdpsim {

/// What ranks that never talked before pay in a cold step. What the profile does not know costs nothing.
struct SetUpCosts {
  Communicators communicators = Communicators::one;
  CommunicatorCost communicator;  ///< Those of all tensor-parallel shards of a group are made at the same time.
  Duration first_contact;
};

/// The simulated cluster as one job sees it. The machines of jobs that run beside each other have one network in
/// common, which serves one simulation at a time: it holds the flows.
struct Machine {
  const CostModel* cost = nullptr;
  NetworkModel* network = nullptr;
  const Placement* placement = nullptr;
  std::int64_t tp = 1;
  std::vector<double> speed;  ///< Of every worker's slowest device, relative to nominal.
  /// So many workers can compute at a time at full speed; more of them share evenly. Nothing: all can. Real ranks on
  /// fewer cores are predicted so, by the exact grain alone.
  std::optional<double> processors{};
  Bandwidth d2h;  ///< Per device, to host memory.
  Bandwidth h2d;
  Duration micro_batch_overhead;
  Duration step_overhead;
  std::optional<SetUpCosts> set_up{};                    ///< Of cold steps; none in warm ones.
  std::optional<KernelSlowdown> beside_communication{};  ///< Nothing if it is not known: then there is none.
  Duration issue;                                        ///< What the host takes to issue a kernel.
  /// Durations by bytes per device: an all-gather or reduce-scatter of so many gathered bytes and an all-reduce among
  /// the tp devices of a rank, a reduce-scatter and an all-gather over the devices that hold the same shard in the
  /// whole pool.
  std::function<Duration(Bytes)> tp_collective;
  std::function<Duration(Bytes)> tp_all_reduce;
  std::function<Duration(Bytes)> pool_reduce_scatter;
  std::function<Duration(Bytes)> pool_all_gather;
  /// The same of expert groups, where there are any: the all-to-all of each, of so many bytes that each device sends,
  /// and a reduce-scatter and an all-gather over the devices that have the same experts.
  std::function<Duration(Bytes)> expert_all_to_all{};
  std::function<Duration(Bytes)> expert_reduce_scatter{};
  std::function<Duration(Bytes)> expert_all_gather{};
  /// How the pool's collectives load the network. Asked for only where jobs share it; nothing: they do not.
  std::function<CollectivePlan()> pool_plan;
  /// Keep Timeline::instructions, in the order in which they end. The exact grain alone knows them.
  bool record_instructions = false;

  /// Of a worker while all of them compute.
  [[nodiscard]] double speed_among_all(std::size_t worker) const {
    const double share = processors ? std::min(1.0, *processors / static_cast<double>(speed.size())) : 1;
    return share * speed[worker];
  }
};

}  // namespace hdpsim
