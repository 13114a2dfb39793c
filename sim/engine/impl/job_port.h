#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/base/check.h"
#include "sim/engine/event_queue.h"
#include "sim/network/network_model.h"

namespace hdpsim {

/// The owner of a flow: its job, and the key by which that job knows it.
struct FlowOwner {
  static constexpr std::uint32_t nobody = UINT32_MAX;
  std::uint32_t job = nobody;
  std::uint32_t key = 0;
};

/// What all jobs of a simulation share: the event queue and the network. Its destructor removes the remaining flows.
struct SharedGround {
  explicit SharedGround(NetworkModel& shared_network) : network(&shared_network) {}
  SharedGround(const SharedGround&) = delete;
  SharedGround& operator=(const SharedGround&) = delete;
  ~SharedGround() {
    for (std::size_t flow = 0; flow < owners.size(); ++flow) {
      if (owners[flow].job != FlowOwner::nobody) network->remove(FlowId(flow));
    }
  }

  EventQueue queue;
  NetworkModel* network;
  std::vector<FlowOwner> owners;  ///< By flow.
  bool any_flow = false;          ///< Whether a flow has ever been added.
  std::uint64_t round = 0;        ///< Number of the round in which jobs learn of changed rates.
};

/// One job's view of the event queue. The highest bits of an event's actor hold the job, so that events stay small; the
/// job only sees the other bits.
class JobQueue {
 public:
  static constexpr std::uint32_t job_bits = 6;
  static constexpr std::uint32_t actor_bits = 32 - job_bits;
  static constexpr std::uint32_t most_jobs = 1U << job_bits;
  static constexpr std::uint32_t most_actors = 1U << actor_bits;

  JobQueue(EventQueue& queue, std::uint32_t job) : queue_(queue), job_(job) {
    HDPSIM_CHECK(job < most_jobs, "job {} of at most {}", job, most_jobs);
  }

  [[nodiscard]] Instant now() const { return queue_.now(); }
  void schedule_after(Duration delay, std::uint32_t actor, std::uint32_t tag) {
    HDPSIM_CHECK(actor < most_actors, "actor {} of at most {} of a job", actor, most_actors);
    ++pending_;
    queue_.schedule_after(delay, job_ << actor_bits | actor, tag);
  }

  [[nodiscard]] static std::uint32_t job_of(const Event& event) { return event.actor >> actor_bits; }
  /// The event as the job scheduled it. Call once for each executed event.
  [[nodiscard]] Event take(Event event) {
    --pending_;
    event.actor &= most_actors - 1;
    return event;
  }
  /// The number of pending events of the job. If it is 0 before the step has ended, nothing will ever wake the job.
  [[nodiscard]] std::uint64_t pending() const { return pending_; }

  /// A version number that no pending event of the job carries; never 0. Events that carry an older version are
  /// outdated, including those of an earlier step.
  [[nodiscard]] std::uint32_t fresh_version() {
    version_ = version_ == most_versions - 1 ? 1 : version_ + 1;
    return version_;
  }
  static constexpr std::uint32_t most_versions = 1U << 28;
  /// The bits of an event's tag that hold its version, where those above hold the kind of the event.
  static constexpr std::uint32_t version_mask = most_versions - 1;

 private:
  EventQueue& queue_;
  std::uint32_t job_;
  std::uint64_t pending_ = 0;
  std::uint32_t version_ = 0;
};

/// One job's view of the flows in the network.
class JobFlows {
 public:
  JobFlows(SharedGround& ground, std::uint32_t job) : ground_(ground), job_(job) {}

  /// Adds a message. Whenever the rate of its flow changes, the job is notified with this key.
  FlowId add(const Route& route, Bandwidth cap, std::uint32_t key, double weight = 1) {
    return own(ground_.network->add(route, cap, weight), key);
  }
  /// Adds a part of a collective that takes at most `cap`.
  FlowId add(std::span<const FairShare::Load> part, Bandwidth cap, std::uint32_t key) {
    return own(ground_.network->add(part, cap), key);
  }
  void remove(FlowId flow) {
    ground_.network->remove(flow);
    ground_.owners[flow.index()].job = FlowOwner::nobody;
  }
  [[nodiscard]] Bandwidth rate(FlowId flow) const { return ground_.network->rate(flow); }
  /// The number of the current round of rate changes: a listener that has looked at all its flows in this round need
  /// not do so again.
  [[nodiscard]] std::uint64_t round() const { return ground_.round; }

 private:
  FlowId own(FlowId flow, std::uint32_t key) {
    if (ground_.owners.size() <= flow.index()) ground_.owners.resize(flow.index() + 1);
    ground_.owners[flow.index()] = {job_, key};
    ground_.any_flow = true;
    return flow;
  }

  SharedGround& ground_;
  std::uint32_t job_;
};

/// One job's access to what all jobs share.
struct JobPort {
  JobPort(SharedGround& ground, std::uint32_t job) : queue(ground.queue, job), flows(ground, job) {}
  JobQueue queue;
  JobFlows flows;
};

}  // namespace hdpsim
