#pragma once

#include <functional>

#include "sim/engine/priced_program.h"

namespace hdpsim {

/// The time of a block on one rank of a ring whose ranks all run in lockstep, so that the time of every exchange is
/// known.
struct LoopTime {
  Duration total;
  Breakdown breakdown;  ///< Sums to total.
};

using TransferTime = std::function<Duration(Bytes)>;

/// Schedules a range of a block's body, all iterations, on the streams of one device of the given speed. What runs on
/// one stream takes the sum of its times. Without host
/// copies, data-parallel collectives and messages that a later iteration waits for, the iterations are independent, and
/// only one is scheduled. Otherwise iterations are scheduled until they only repeat, each later by the same time, and
/// the rest is multiplied. O(instructions x scheduled iterations).
[[nodiscard]] LoopTime loop_time(const PricedProgram& priced, std::size_t block, BodyRange range, double speed,
                                 const TransferTime& transfer);
/// The same for a single iteration.
[[nodiscard]] LoopTime pass_time(const PricedProgram& priced, std::size_t block, BodyRange range, double speed,
                                 const TransferTime& transfer);
/// The time of a whole pass of a micro-batch, all blocks, on a rank of this speed in a ring with these transfer times.
[[nodiscard]] LoopTime micro_batch_time(const PricedProgram& priced, double speed, const TransferTime& transfer);

}  // namespace hdpsim
