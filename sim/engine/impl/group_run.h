#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "sim/engine/impl/loop_schedule.h"
#include "sim/engine/priced_program.h"

namespace hdpsim {

/// By what the hops of a ring differ while no other traffic uses their links.
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
  /// Fraction of the exchanges that can go at the pace of the slowest hop: 1 - 2d (or d) / exchanges, at least 0.
  double slow_fraction = 1;
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

/// The time of a cycle of a speed class in which a fraction of the exchanges goes at the pace of the slowest hop.
[[nodiscard]] Duration between(Duration own, Duration slowest, double slow_fraction);

/// One iteration of a block's loop, or one segment of it, in three parts. A block without an exchange has only
/// `before`, the whole body.
struct Pass {
  BodyRange before;
  BodyRange ring;
  BodyRange behind;
  Duration copy;  ///< One layer's time on the busiest stream of host copies and data-parallel collectives.
  Duration tail;  ///< The part of `copy` that remains when the last layer has ended: its gradient reductions.
  [[nodiscard]] bool has_ring() const { return ring.first < ring.last; }
};

/// One iteration of a block, as one segment per ring in it; there are two rings where attention's forward is
/// recomputed. What follows a ring belongs to the next segment, or to the same one if it is the last.
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

/// The times of a pass before its first all-to-all of an expert group and after its last one, when it runs by itself.
/// In between it goes from layer to layer together with the other passes of its wave.
struct Margins {
  Duration lead;
  Duration tail;
  Duration experts;  ///< In between: the experts' products of all layers on a device of nominal speed.
};
/// The margins on workers of this speed; no value for a pass without an all-to-all.
[[nodiscard]] std::optional<Margins> margins(const PricedProgram& priced, double speed, const TransferTime& transfer);

/// The passes of a wave in the fluid fidelity. They begin the first all-to-all together, when the last of them has
/// reached it, and leave the last all-to-all together. In between, each layer takes the time of the slowest pass.
class WaveRun {
 public:
  /// A pass whose ring shares links begins. It goes from layer to layer together with the other passes of this kind.
  void begin_shared(Instant begun, const Margins& margins) {
    met_shared_ = std::max(met_shared_, begun + margins.lead);
  }
  /// Adds a pass: when it began, and when it would have ended by itself or, if `shared`, together with only those
  /// passes whose rings share links.
  void add(Instant begun, Instant ended, const Margins& margins, bool shared) {
    const Instant met = shared ? met_shared_ : begun + margins.lead;
    met_ = std::max(met_, met);
    together_ = std::max(together_, (ended - met) - margins.tail);
    ++passes_;
  }
  [[nodiscard]] std::size_t passes() const { return passes_; }
  /// The end of a pass, once all passes have been added; never earlier than it would have ended by itself.
  [[nodiscard]] Instant end(const Margins& margins) const { return met_ + together_ + margins.tail; }

 private:
  Instant met_;
  Instant met_shared_;
  Duration together_;
  std::size_t passes_ = 0;
};

/// Adds to every link of a route its share of a message.
void add_route_bytes(const Route& route, Bytes bytes, LinkTraffic& links);

/// Adds to every link of a ring's hops the share `share` of the bytes that the program sends over it. `links` is
/// by LinkId.
void add_ring_traffic(const MicroBatchProgram& program, const std::vector<Hop>& hops, double share, LinkTraffic& links);

/// The share of its bytes that a program has sent after all blocks before `block` and `iterations` iterations of it. 1
/// if the program sends nothing.
[[nodiscard]] double share_sent(const MicroBatchProgram& program, std::size_t block, std::int64_t iterations);

}  // namespace hdpsim
