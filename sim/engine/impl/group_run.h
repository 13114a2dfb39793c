#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/impl/loop_schedule.h"
#include "sim/engine/priced_program.h"

namespace hdpsim {

/// Hops that a rank, or several, must wait for: an exchange takes as long as the slowest of them.
class RingPace {
 public:
  void add(const Hop& hop, bool contention);
  /// Time of one exchange when nobody else uses the links.
  [[nodiscard]] Duration transfer(Bytes bytes) const;
  /// The same when the contended hops get `share`.
  [[nodiscard]] Duration transfer(Bytes bytes, Bandwidth share) const;
  [[nodiscard]] bool is_contended() const { return !contended_.empty(); }

 private:
  struct Kind {
    Duration latency;
    Bandwidth alone;
    friend bool operator==(const Kind&, const Kind&) = default;
  };
  std::vector<Kind> private_;    // distinct
  std::vector<Kind> contended_;  // distinct
};

/// The ranks of a group that have one speed, and the hops beside any of them.
///
/// A ring is a system of ranks that wait for their neighbours once an exchange, and its speed is its slowest cycle of
/// dependencies. A cycle may stay with one rank: its kernels and its own two hops. Or it leaves a rank behind the
/// kernels before the ring, reaches the ring's slowest hop d exchanges later, stays there, and comes back d exchanges
/// before the kernels behind the ring: all but 2d of the ring's exchanges then go at the pace of the slowest hop. Where
/// an all-to-all makes all ranks begin their layers together it need not come back: all but d do.
struct SpeedClass {
  double speed = 1;
  RingPace own;
  double reach =
      1;  ///< Share of the exchanges that can go at the pace of the slowest hop: 1 - 2d (or d) / exchanges, at least 0.
};

struct GroupPace {
  std::vector<SpeedClass> classes;  ///< Slowest device first.
  RingPace all;                     ///< Every hop of the ring.
};

struct RingRules {
  bool contention = true;        ///< Hops share links with others.
  bool begins_together = false;  ///< All ranks begin a layer together.
};
[[nodiscard]] GroupPace group_pace(const std::vector<WorkerId>& group, const std::vector<Hop>& hops,
                                   const Machine& machine, const RingRules& rules);

/// A cycle of a speed class, of which `reach` of the exchanges go at the pace of the slowest hop.
[[nodiscard]] Duration between(Duration own, Duration slowest, double reach);

/// Time of a whole pass of a micro-batch on a rank of this speed, in a ring with these transfer times, all blocks.
[[nodiscard]] LoopTime micro_batch_time(const PricedProgram& priced, double speed, const TransferTime& transfer);

/// One turn of a block's loop, or one leg of it, in three parts. A block without an exchange has only `before`, which
/// then holds all iterations.
struct Pass {
  BodyRange before;
  BodyRange ring;
  BodyRange behind;
  Duration copy;  ///< To or from host memory or over the pool, one layer's.
  Duration tail;  ///< What is left of it when the last layer has ended.
  [[nodiscard]] bool has_ring() const { return ring.first < ring.last; }
};

/// One pass through a block: a leg for every ring in it, of which there are two where forward is computed again. What
/// lies behind a ring is that leg's if there is no other one.
[[nodiscard]] std::vector<Pass> pass_through(const PricedProgram& priced, std::size_t block);

/// Time of the compute instructions of a part in one iteration.
[[nodiscard]] Duration kernel_time(const PricedProgram& priced, std::size_t block, BodyRange part, double speed,
                                   std::int64_t iteration);

/// Time of the ring of a pass on ranks of this speed.
[[nodiscard]] Duration ring_time(const PricedProgram& priced, std::size_t block, BodyRange ring, double speed,
                                 const TransferTime& transfer);

/// What the messages of a ring must not exceed: while a ring step computes, the largest message has to arrive.
struct RingDemand {
  Bytes message;
  Duration step;  ///< Of the kernels.
  /// The most that a flow takes whose messages take so long before their first byte arrives: faster would not help.
  [[nodiscard]] Bandwidth rate(Duration latency) const;
};
[[nodiscard]] RingDemand ring_demand(const PricedProgram& priced, std::size_t block, BodyRange ring, double speed);

}  // namespace hdpsim
