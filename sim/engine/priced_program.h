#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/base/id.h"
#include "sim/engine/machine.h"
#include "sim/engine/timeline.h"
#include "sim/program/program.h"

namespace hdpsim {

/// Device work gets slower on a slow device; transfers and collectives do not.
[[nodiscard]] bool depends_on_device_speed(Opcode opcode);

/// A pass's program with the time of every instruction on a device of nominal speed. Exchanges have no time of
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
  /// Before anything else all ranks spend `delay`, booked as overhead: the program must begin with that (checked), if
  /// there is one.
  void delay_start(Duration delay);
};

[[nodiscard]] PricedProgram price(const Program& program, PassId id, const Machine& machine);

/// Adds what the kernels of a program take on these workers, each at its own device's speed.
void add_evidence(const PricedProgram& priced, std::span<const WorkerId> workers, const Machine& machine,
                  EvidenceSums& evidence);

/// The hop from one worker to another: one route for each tensor-parallel shard.
struct Hop {
  std::vector<Route> routes;
  Duration latency;  ///< The longest.
  Bandwidth alone;   ///< The slowest.
  bool is_private = true;

  /// Time of a message when nobody else uses the links. Each shard sends `bytes`.
  [[nodiscard]] Duration transfer(Bytes bytes) const { return latency + bytes / alone; }
};

/// Hop i leads from group[i] to group[(i + 1) % N] on one of their stages. No hops for a group of one.
[[nodiscard]] std::vector<Hop> ring_hops(const MicroBatch& micro_batch, std::int64_t stage, const Machine& machine);
/// From a rank's devices of one stage to those of another.
[[nodiscard]] Hop stage_hop(HdpRank rank, std::int64_t from, std::int64_t to, const Machine& machine);

}  // namespace hdpsim
