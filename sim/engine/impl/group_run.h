#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "sim/engine/impl/loop_schedule.h"
#include "sim/engine/priced_program.h"

namespace hdpsim {

/// The distinct hops of a ring. All ranks move at the pace of the slowest one.
class RingPace {
 public:
  RingPace(const std::vector<Hop>& hops, bool contention);
  /// Time of one exchange when nobody else uses the links.
  [[nodiscard]] Duration transfer(Bytes bytes) const;
  /// The same when the contended hops get `shared`.
  [[nodiscard]] Duration transfer(Bytes bytes, Bandwidth shared) const;
  [[nodiscard]] bool is_contended() const { return !contended_.empty(); }

 private:
  struct Kind {
    Duration latency;
    Bandwidth alone;
    friend bool operator==(const Kind&, const Kind&) = default;
  };
  std::vector<Kind> private_;
  std::vector<Kind> contended_;
};

/// Time of a whole micro-batch on a rank of this speed, in a ring with these transfer times, all blocks.
[[nodiscard]] LoopTime micro_batch_time(const PricedProgram& priced, double speed, const TransferTime& transfer);

/// Distinct speeds of a group's ranks, slowest first.
[[nodiscard]] std::vector<double> distinct_speeds(const MicroBatch& micro_batch, const Machine& machine);

/// One part of a micro-batch whose ring shares links with others: either a fixed time or a stretch of ring.
struct Segment {
  bool ring = false;
  Duration fixed;         ///< Of a fixed part.
  std::size_t block = 0;  ///< Of a ring: where its instructions are.
  BodyRange range;
};

/// The segments of one pass through a block: before the ring, the ring, behind it. One fixed segment for a block without a ring.
[[nodiscard]] std::vector<Segment> segments_of(const PricedProgram& priced, std::size_t block, double speed);

/// Time of a ring segment on ranks of this speed.
[[nodiscard]] Duration ring_time(const PricedProgram& priced, const Segment& segment, double speed,
                                 const TransferTime& transfer);

/// The rate at which a ring that waits for nothing but its own kernels sends: what it leaves, others may use.
[[nodiscard]] Bandwidth ring_demand(const PricedProgram& priced, const Segment& segment, double speed);

}  // namespace hdpsim
