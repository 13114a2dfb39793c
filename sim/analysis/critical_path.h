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

/// One link of the chain of passes that the end of a step hangs on.
struct CriticalPass {
  PassId pass;
  WorkerId last_to_come;  ///< Its earlier work, or the message to it, is what the pass waited for.
  Instant begin;          ///< Since when nothing held it back any more.
  Instant end;
  Duration message;  ///< Before `begin`: on the way from another stage.
  /// Of end - begin: the kernels of the slowest device of the group; what is left is waiting for messages of the ring
  /// (cp_comm) or, without a ring, for copies (offload_stall); in a wave of several, for each other (group_wait).
  Breakdown time;
};

/// Why a step takes as long as it does: passes, each of which waited for the one before it, from the start of the step
/// to the end of the last pass; then what all workers do at the end of the step.
struct CriticalPath {
  std::vector<CriticalPass> passes;  ///< In the order of time.
  Duration ending;                   ///< Gradients, optimizer, fixed cost.

  /// Of all passes, and of the messages between them (bubble).
  [[nodiscard]] Breakdown time() const;
};

/// The path of a simulated step. A group begins when its last worker is there, and a wave of groups (expert_waves.h)
/// goes on when that of all is; that worker's pass before, or the message that it needed of another stage, is the link
/// before. O(passes of all workers + work of the path's passes).
[[nodiscard]] CriticalPath critical_path(const Program& program, const Timeline& timeline, const Machine& machine);

/// The hop of a ring over which a message takes longest when it is alone, and the link that holds it back.
struct SlowHop {
  HdpRank from;
  HdpRank to;
  std::string link;
  Bandwidth rate;  ///< Of a message alone, per tensor-parallel shard.
};
/// Nothing without a ring, or if no link ever binds its messages. The first of several equal ones.
[[nodiscard]] std::optional<SlowHop> slowest_hop(const Program& program, PassId pass, const Machine& machine);

}  // namespace hdpsim
