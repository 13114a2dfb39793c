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

/// How long a collective of one kind and size takes among a group of the job's devices, nothing else on the links, and
/// what that rests on: CollectiveModel, or a test's own figures.
using Collective = std::function<Estimate(CollectiveKind, Bytes)>;

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
  Collective tensor_parallel;                            ///< Among the tp devices of a rank's stage.
  Collective pool;                                       ///< Over the devices of all ranks that hold the same shard.
  Collective experts{};       ///< In each expert group; this and the next where there are any.
  Collective expert_pools{};  ///< Over the devices that have the same experts.
  /// How a collective over the pool loads the network. Asked for only where jobs share it. If empty, they do not.
  std::function<CollectivePlan(CollectiveKind, Bytes)> pool_flows;
  /// Keep Timeline::instructions, in the order in which they end. The exact grain alone knows them.
  bool record_instructions = false;

  /// Of a worker while all of them compute.
  [[nodiscard]] double speed_among_all(std::size_t worker) const {
    const double share = processors ? std::min(1.0, *processors / static_cast<double>(speed.size())) : 1;
    return share * speed[worker];
  }
};

}  // namespace hdpsim
