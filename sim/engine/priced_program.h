#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/id.h"
#include "sim/engine/machine.h"
#include "sim/engine/timeline.h"
#include "sim/program/program.h"

namespace hdpsim {

/// Device work gets slower on a slow device; transfers and collectives do not.
[[nodiscard]] bool depends_on_device_speed(Opcode opcode);

/// A micro-batch's program with the time of every instruction on a device of nominal speed. Exchanges have no time of
/// their own: the network decides.
struct PricedProgram {
  MicroBatchProgram program;
  std::vector<std::vector<Duration>> times;  ///< By block and instruction.
  EvidenceTimes evidence{};                  ///< Of one rank's kernels, all iterations.

  [[nodiscard]] Duration time(std::size_t block, std::size_t instruction, double speed) const {
    const Duration nominal = times[block][instruction];
    const bool scaled = speed != 1 && depends_on_device_speed(program.blocks[block].body[instruction].opcode);
    return scaled ? nominal.scaled(1 / speed) : nominal;
  }
  /// Before anything else all ranks spend `delay`, booked as overhead: the program must begin with that (checked).
  void delay_start(Duration delay);
};

[[nodiscard]] PricedProgram price(const Program& program, MicroBatchId id, const Machine& machine);

/// The hop from one rank of a ring to the next: one route for each tensor-parallel shard.
struct Hop {
  std::vector<Route> routes;
  Duration latency;  ///< The longest.
  Bandwidth alone;   ///< The slowest.
  bool is_private = true;

  /// Time of a message when nobody else uses the links. Each shard sends `bytes`.
  [[nodiscard]] Duration transfer(Bytes bytes) const { return latency + bytes / alone; }
};

/// Hop i leads from group[i] to group[(i + 1) % N]. No hops for a group of one.
[[nodiscard]] std::vector<Hop> ring_hops(const MicroBatch& micro_batch, const Machine& machine);

/// The collectives over the pool at the end of a step when nobody else uses the links: gradients, then parameters.
[[nodiscard]] Duration pool_sync(const StepEnd& end, const Machine& machine);
/// Of the rank with the slowest device.
[[nodiscard]] Duration slowest_optimizer(const StepEnd& end, const Machine& machine);

/// When the micro-batches of a step ran, and what its collectives took.
struct StepTimes {
  Instant begin;
  const std::vector<Instant>& finished;  ///< By rank: when it ended its last micro-batch.
  Duration sync;
};

/// What every rank does after the last micro-batch, booked on top of the timeline's ranks: the wait for the slowest
/// rank, gradient sync, optimizer, fixed cost. Sets step_time.
void finish_step(const StepEnd& end, const Machine& machine, const StepTimes& times, Timeline& timeline);

}  // namespace hdpsim
