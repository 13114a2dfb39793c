#pragma once

#include <functional>

#include "sim/engine/priced_program.h"

namespace hdpsim {

/// How long a block takes on one rank of a ring whose ranks all run in step, so that every exchange takes the same
/// known time.
struct LoopTime {
  Duration total;
  Breakdown breakdown;  ///< Sums to total.
};

/// The instructions [first, last) of a block's body.
struct BodyRange {
  std::size_t first = 0;
  std::size_t last = 0;
};

using TransferTime = std::function<Duration(Bytes)>;

/// Runs a range of a block's body, all iterations, on the streams of one device of the given speed. Without copies to
/// the host and collectives over the pool the iterations owe each other nothing and one pass is enough. O(instructions
/// x passes).
[[nodiscard]] LoopTime loop_time(const PricedProgram& priced, std::size_t block, BodyRange range, double speed,
                                 const TransferTime& transfer);
/// One iteration alone.
[[nodiscard]] LoopTime pass_time(const PricedProgram& priced, std::size_t block, BodyRange range, double speed,
                                 const TransferTime& transfer);

}  // namespace hdpsim
