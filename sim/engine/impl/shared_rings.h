#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "sim/engine/event_queue.h"
#include "sim/engine/impl/group_run.h"
#include "sim/engine/impl/job_port.h"

namespace hdpsim {

/// The micro-batches of the fluid grain whose rings share links with others. Such a micro-batch goes through its
/// layers one by one; while it is in a ring its flows are in the network, and the ring changes pace whenever they get
/// another rate. A ring asks for no more than its kernels let it send, so that what it leaves goes to others.
class SharedRings {
 public:
  SharedRings(JobFlows& flows, JobQueue& queue, std::size_t micro_batches);
  ~SharedRings();
  SharedRings(const SharedRings&) = delete;
  SharedRings& operator=(const SharedRings&) = delete;

  /// `hops` are those of the ring that are not private, at least one.
  void begin(MicroBatchId id, PricedProgram priced, GroupPace pace, std::vector<Hop> hops);
  /// Events of this class carry a tag other than 0 and their micro-batch as actor. Returns true if it has ended.
  bool handle(const Event& event);
  /// A flow of this ring has another rate: the ring goes on at its new pace.
  void rate_changed(MicroBatchId id);
  /// The share of its bytes that a micro-batch has sent; nothing if it does not run here.
  [[nodiscard]] std::optional<double> share_sent(MicroBatchId id) const;

  /// From begin until forget.
  [[nodiscard]] const PricedProgram& priced(MicroBatchId id) const;
  void forget(MicroBatchId id);

 private:
  struct Run;

  [[nodiscard]] bool is_running(MicroBatchId id) const;
  void enter_block(MicroBatchId id);
  void enter_pass(MicroBatchId id);
  void enter_ring(MicroBatchId id);
  void leave_ring(MicroBatchId id);
  bool end_pass(MicroBatchId id);
  void set_pace(MicroBatchId id, Bandwidth share);
  void schedule(MicroBatchId id, Duration delay, std::uint32_t tag);
  [[nodiscard]] Bandwidth slowest_share(const Run& run) const;

  JobFlows& flows_;
  JobQueue& queue_;
  std::vector<std::unique_ptr<Run>> runs_;  // by micro-batch
};

}  // namespace hdpsim
