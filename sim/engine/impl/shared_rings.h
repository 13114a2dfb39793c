#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/engine/event_queue.h"
#include "sim/engine/impl/group_run.h"

namespace hdpsim {

/// The micro-batches of the fluid grain whose rings share links with others. Such a micro-batch goes through its
/// layers one by one; while it is in a ring its flows are in the network, and the ring changes pace whenever they get
/// another rate. A ring asks for no more than its kernels let it send, so that what it leaves goes to others.
class SharedRings {
 public:
  SharedRings(Machine& machine, EventQueue& queue, std::size_t micro_batches);
  ~SharedRings();
  SharedRings(const SharedRings&) = delete;
  SharedRings& operator=(const SharedRings&) = delete;

  /// `hops` are those of the ring that are not private, at least one.
  void begin(MicroBatchId id, PricedProgram priced, GroupPace pace, std::vector<Hop> hops);
  /// Events of this class carry a tag other than 0 and their micro-batch as actor. Returns true if it has ended.
  bool handle(const Event& event);
  /// Call after every event: rings whose share has changed go on at their new pace.
  void follow_rate_changes();

  /// From begin until forget.
  [[nodiscard]] const PricedProgram& priced(MicroBatchId id) const;
  void forget(MicroBatchId id);

 private:
  struct Run;

  void enter_block(MicroBatchId id);
  void enter_pass(MicroBatchId id);
  void enter_ring(MicroBatchId id);
  void leave_ring(MicroBatchId id);
  bool end_pass(MicroBatchId id);
  void set_pace(MicroBatchId id, Bandwidth share);
  void schedule(MicroBatchId id, Duration delay, std::uint32_t tag);
  [[nodiscard]] Bandwidth slowest_share(const Run& run) const;

  Machine& machine_;
  EventQueue& queue_;
  std::vector<std::unique_ptr<Run>> runs_;  // by micro-batch
  std::vector<MicroBatchId> owners_;        // by flow
  std::vector<FlowId> changed_;
};

}  // namespace hdpsim
