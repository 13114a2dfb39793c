#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/base/id.h"
#include "sim/engine/collective_traffic.h"
#include "sim/engine/machine.h"
#include "sim/engine/timeline.h"
#include "sim/program/program.h"

namespace hdpsim {

/// Whether an instruction takes longer on a slow device: kernels do, transfers and collectives do not.
[[nodiscard]] bool depends_on_device_speed(Opcode opcode);

/// The program of a pass with the time of every instruction on a device of nominal speed. The time of an exchange is 0
/// here, because it depends on the network.
struct PricedProgram {
  MicroBatchProgram program;
  std::vector<std::vector<Duration>> times;  ///< By block and instruction.
  EvidenceTimes evidence{};                  ///< Times of one rank's kernels over all iterations.
  PassTraffic traffic{};                     ///< Empty where the machine does not know what collectives load.

  [[nodiscard]] Duration time(std::size_t block, std::size_t instruction, double speed) const {
    const Duration nominal = times[block][instruction];
    const bool scaled = speed != 1 && depends_on_device_speed(program.blocks[block].body[instruction].opcode);
    return scaled ? nominal.scaled(1 / speed) : nominal;
  }
  /// Adds `delay` to the program's first instruction on all ranks, which must be an overhead instruction unless `delay`
  /// is 0 (checked).
  void delay_start(Duration delay);
};

/// A route, and the share of a shard's message that goes over it.
struct HopRoute {
  Route route;
  double share = 1;

  /// The rate of the message while its part has `rate`, and the other way round.
  [[nodiscard]] Bandwidth of_message(Bandwidth rate) const { return share == 1 ? rate : rate.scaled(1 / share); }
  [[nodiscard]] Bandwidth of_part(Bandwidth rate) const { return share == 1 ? rate : rate.scaled(share); }
  [[nodiscard]] Bytes part(Bytes message) const { return share == 1 ? message : message.scaled(share); }
};

/// The hop from one worker to another: for each tensor-parallel shard one route, or those of the parts of its message.
struct Hop {
  std::vector<HopRoute> routes;
  Duration latency;  ///< The longest latency of a route.
  Bandwidth alone;   ///< The lowest rate of a shard's message, without other traffic.
  bool is_private = true;

  /// Time of a message without other traffic on the links. Each shard sends `bytes`.
  [[nodiscard]] Duration transfer(Bytes bytes) const { return latency + bytes / alone; }
};

/// The hops of a pass's rings: hop i leads from group[i] to group[GroupSharing::next(i)]. Empty without a ring.
[[nodiscard]] std::vector<Hop> ring_hops(const Program& program, PassId id, const Machine& machine);
/// The same for all passes of a micro-batch on a stage.
[[nodiscard]] std::vector<Hop> ring_hops(const GroupSharing& sharing, const std::vector<HdpRank>& group,
                                         std::int64_t stage, const Machine& machine);
/// The program of a pass with its prices.
[[nodiscard]] PricedProgram price(const Program& program, PassId id, const Machine& machine);
/// The same, of a pass whose ring_hops() are known.
[[nodiscard]] PricedProgram price(const Program& program, PassId id, const std::vector<Hop>& hops,
                                  const Machine& machine);

/// What a rank without a ring does during a pass, at this speed: its kernels, and what its compute stream waits for.
/// Sums to how long the pass takes where nothing shares its links.
[[nodiscard]] Breakdown time_of_one_rank(const PricedProgram& priced, double speed);

/// Adds the kernel times of a program on these workers, each at the speed of its own device.
void add_evidence(const PricedProgram& priced, std::span<const WorkerId> workers, const Machine& machine,
                  EvidenceSums& evidence);

/// The hop from a rank's devices of one stage to its devices of another stage.
[[nodiscard]] Hop stage_hop(HdpRank rank, std::int64_t from, std::int64_t to, const Machine& machine);

}  // namespace hdpsim
