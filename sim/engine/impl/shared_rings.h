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
  std::size_t index = 0;   ///< Index of the wave.
  std::size_t passes = 1;  ///< Number of its passes with such rings.
};

/// The passes of the fluid fidelity whose rings share links with others. Such a pass is simulated layer by layer: while
/// it is in a ring, its flows are in the network, and the ring changes its pace whenever their rates change. A ring
/// asks for no more bandwidth than its kernels let it use, so that the rest goes to others.
///
/// The passes of a wave go from layer to layer together, because their all-to-alls synchronize them. Otherwise a faster
/// ring would run ahead of the others and have the links to itself, although in reality all rings send at the same
/// time.
class SharedRings {
 public:
  SharedRings(JobFlows& flows, JobQueue& queue, std::size_t passes);
  ~SharedRings();
  SharedRings(const SharedRings&) = delete;
  SharedRings& operator=(const SharedRings&) = delete;

  /// Begins a pass. `hops` are the hops of its ring that are not private, at least one.
  void begin(PassId id, std::shared_ptr<const PricedProgram> priced, GroupPace pace, std::vector<Hop> hops,
             const SharedWave& wave);
  /// Handles an event of this class: its actor is the pass, its tag is not 0 and below 2^30. Returns true if the pass
  /// has ended.
  bool handle(const Event& event);
  /// The rate of a flow of this pass's ring has changed: the ring continues at its new pace.
  void rate_changed(PassId id);
  /// The share of its bytes that a pass has sent; no value if the pass does not run here.
  [[nodiscard]] std::optional<double> share_sent(PassId id) const;

  /// The program of a pass; it is known from begin() until forget().
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
  void set_pace(PassId id, HopShares shares);
  void schedule(PassId id, Duration delay, std::uint32_t tag);
  [[nodiscard]] HopShares shares_of(const Run& run) const;

  JobFlows& flows_;
  JobQueue& queue_;
  std::vector<std::unique_ptr<Run>> runs_;     // by pass
  std::vector<std::vector<PassId>> at_layer_;  // by wave: passes that wait for the others before their next layer
};

}  // namespace hdpsim
