#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sim/engine/impl/loop_schedule.h"
#include "sim/engine/priced_program.h"

namespace hdpsim {

/// What tells the hops of a ring apart while no other traffic is on their links.
struct HopKind {
  Duration latency;
  Bandwidth alone;
  friend bool operator==(const HopKind&, const HopKind&) = default;
};

/// The rates that hops of a ring get of links which they share with others, if less than they ask for.
class HopShares {
 public:
  /// The slowest hop of a kind counts.
  void limit(const HopKind& kind, Bandwidth rate);
  [[nodiscard]] Bandwidth rate(const HopKind& kind) const;  ///< At most that of the kind alone.
  friend bool operator==(const HopShares&, const HopShares&) = default;

 private:
  std::vector<std::pair<HopKind, Bandwidth>> limits_;  // a few
};

/// The hops that one or several ranks wait for. An exchange takes as long as the slowest of them.
class RingPace {
 public:
  void add(const Hop& hop, bool contention);
  /// Time of one exchange without other traffic on the links.
  [[nodiscard]] Duration transfer(Bytes bytes) const;
  /// The same while contended hops have these shares.
  [[nodiscard]] Duration transfer(Bytes bytes, const HopShares& shares) const;
  [[nodiscard]] bool is_contended() const { return !contended_.empty(); }

 private:
  std::vector<HopKind> private_;    // distinct
  std::vector<HopKind> contended_;  // distinct
};

/// The ranks of a group that have the same speed, and the hops to and from them.
///
/// In a ring every rank waits for its neighbours once per exchange, so that the slowest cycle of dependencies sets the
/// ring's speed. A cycle may stay with one rank: its kernels and its own two hops. Or it leaves a rank after the
/// kernels before the ring, reaches the ring's slowest hop d exchanges later, stays there, and returns to the rank d
/// exchanges before the kernels after the ring: then all but 2d of the ring's exchanges go at the pace of the slowest
/// hop. Where an all-to-all makes all ranks begin their layers together, the cycle need not return, and all but d
/// exchanges do.
struct SpeedClass {
  double speed = 1;
  RingPace own;
  /// Share of the exchanges that can go at the pace of the slowest hop: 1 - 2d (or d) / exchanges, at least 0.
  double reach = 1;
};

struct GroupPace {
  std::vector<SpeedClass> classes;  ///< Slowest device first.
  RingPace all;                     ///< Every hop of the ring.
};

struct RingRules {
  bool contention = true;        ///< Hops share links with others.
  bool begins_together = false;  ///< All ranks begin a layer, or its rings, together.
  GroupSharing sharing = {};
};
[[nodiscard]] GroupPace group_pace(const std::vector<WorkerId>& group, const std::vector<Hop>& hops,
                                   const Machine& machine, const RingRules& rules);

/// The time of a cycle of a speed class in which a share `reach` of the exchanges goes at the pace of the slowest hop.
[[nodiscard]] Duration between(Duration own, Duration slowest, double reach);

/// One iteration of a block's loop, or one leg of it, in three parts. A block without an exchange has only `before`,
/// the whole body.
struct Pass {
  BodyRange before;
  BodyRange ring;
  BodyRange behind;
  Duration copy;  ///< One layer's time on the busiest stream of host copies and data-parallel collectives.
  Duration tail;  ///< The part of `copy` that remains when the last layer has ended: its gradient reductions.
  [[nodiscard]] bool has_ring() const { return ring.first < ring.last; }
};

/// One iteration of a block, as one leg per ring in it; there are two rings where attention's forward is recomputed.
/// What follows a ring belongs to the next leg, or to the same one if it is the last.
[[nodiscard]] std::vector<Pass> pass_through(const PricedProgram& priced, std::size_t block);

/// The time of the compute instructions of a part in one iteration.
[[nodiscard]] Duration kernel_time(const PricedProgram& priced, std::size_t block, BodyRange part, double speed,
                                   std::int64_t iteration);

/// The time of the ring of a pass on ranks of this speed.
[[nodiscard]] Duration ring_time(const PricedProgram& priced, std::size_t block, BodyRange ring, double speed,
                                 const TransferTime& transfer);

/// The bandwidth that a ring needs: its largest message has to arrive while one ring step computes.
struct RingDemand {
  Bytes message;
  Duration step;  ///< Time of the attention kernel of one ring step; of the shortest one where they are unequal.
  /// The highest rate that a flow with messages of this latency asks for; a higher one would not help.
  [[nodiscard]] Bandwidth rate(Duration latency) const;
};
[[nodiscard]] RingDemand ring_demand(const PricedProgram& priced, std::size_t block, BodyRange ring, double speed);

}  // namespace hdpsim
