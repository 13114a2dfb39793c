#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/base/id.h"
#include "sim/base/units.h"
#include "sim/engine/machine.h"
#include "sim/engine/timeline.h"
#include "sim/program/program.h"

namespace hdpsim {

/// One link of the chain of passes that determines the end of a step.
struct CriticalPass {
  PassId pass;
  WorkerId last_to_come;  ///< The pass waited for the earlier work of this worker, or for the message to it.
  Instant begin;          ///< Since when the pass had everything it needed.
  Instant end;
  Duration message;  ///< Time before `begin` in which the message from another stage was on its way.
  /// Breakdown of end - begin: the kernels of the slowest device of the group. A rank alone also waits for copies
  /// (offload_stall) and for collectives over the pool (grad_sync). The reasons for which a group waits are not
  /// distinguished: messages of the ring (cp_comm), or in a wave of several groups also each other (group_wait).
  Breakdown time;
};

/// Why a step takes as long as it does: a chain of passes, each of which waited for the one before it, from the start
/// of the step to the end of the last pass; then the work of all workers at the end of the step.
struct CriticalPath {
  std::vector<CriticalPass> passes;  ///< In the order of time.
  Duration ending;                   ///< Reduction of gradients, optimizer, fixed cost; of all updates together.

  /// Breakdown of all passes and of the messages between them (bubble).
  [[nodiscard]] Breakdown time() const;
};

/// The path of a simulated step. A group begins when its last worker is ready, and a wave of groups (expert_waves.h)
/// continues when the last worker of all is; the previous link is that worker's earlier pass, or the message from
/// another stage that it needed. O(passes of all workers + work of the path's passes).
[[nodiscard]] CriticalPath critical_path(const Program& program, const Timeline& timeline, const Machine& machine);

/// The hop of a ring over which a message takes longest when it is alone, and the link that limits it.
struct SlowHop {
  HdpRank from;
  HdpRank to;
  std::string link;
  Bandwidth rate;  ///< Rate of a message alone, per tensor-parallel shard.
};
/// The slowest hop; the first of several equal ones. Empty without a ring, or if no link ever limits its messages.
[[nodiscard]] std::optional<SlowHop> slowest_hop(const Program& program, PassId pass, const Machine& machine);

}  // namespace hdpsim
