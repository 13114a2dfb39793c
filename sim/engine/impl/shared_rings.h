#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "sim/engine/event_queue.h"
#include "sim/engine/impl/group_run.h"
#include "sim/engine/impl/job_port.h"

namespace hdpsim {

/// The passes of a wave whose rings share links, with each other or with others.
struct SharedWave {
  std::size_t index = 0;   ///< Of the wave.
  std::size_t passes = 1;  ///< Those with such rings.
};

/// The passes of the fluid grain whose rings share links with others. Such a pass goes through its
/// layers one by one; while it is in a ring its flows are in the network, and the ring changes pace whenever they get
/// another rate. A ring asks for no more than its kernels let it send, so that what it leaves goes to others.
///
/// Those of a wave go from layer to layer together, as their all-to-alls make them: else a ring that is faster would
/// leave the others behind, and have the links to itself when in truth all send at the same time.
class SharedRings {
 public:
  SharedRings(JobFlows& flows, JobQueue& queue, std::size_t passes);
  ~SharedRings();
  SharedRings(const SharedRings&) = delete;
  SharedRings& operator=(const SharedRings&) = delete;

  /// `hops` are those of the ring that are not private, at least one.
  void begin(PassId id, PricedProgram priced, GroupPace pace, std::vector<Hop> hops, const SharedWave& wave);
  /// Events of this class carry a tag other than 0, below 2^30, and their pass as actor. Returns true if it has ended.
  bool handle(const Event& event);
  /// A flow of this ring has another rate: the ring goes on at its new pace.
  void rate_changed(PassId id);
  /// The share of its bytes that a pass has sent; nothing if it does not run here.
  [[nodiscard]] std::optional<double> share_sent(PassId id) const;

  /// From begin until forget.
  [[nodiscard]] const PricedProgram& priced(PassId id) const;
  void forget(PassId id);

 private:
  struct Run;

  [[nodiscard]] bool is_running(PassId id) const;
  void enter_block(PassId id);
  void enter_pass(PassId id);
  void enter_ring(PassId id);
  void leave_ring(PassId id);
  bool end_pass(PassId id);
  void meet_wave(PassId id);
  void set_pace(PassId id, Bandwidth share);
  void schedule(PassId id, Duration delay, std::uint32_t tag);
  [[nodiscard]] Bandwidth slowest_share(const Run& run) const;

  JobFlows& flows_;
  JobQueue& queue_;
  std::vector<std::unique_ptr<Run>> runs_;     // by pass
  std::vector<std::vector<PassId>> at_layer_;  // by wave: passes that wait for the others before their next layer
};

}  // namespace hdpsim
