#include <algorithm>

#include "sim/engine/event_queue.h"
#include "sim/engine/impl/group_run.h"
#include "sim/engine/impl/progress.h"
#include "sim/engine/impl/shared_rings.h"
#include "sim/engine/impl/simulations.h"

namespace hdpsim {
namespace {

constexpr std::uint32_t group_ended = 0;  // other tags are those of SharedRings

class FluidSimulation {
 public:
  FluidSimulation(const Program& program, Machine& machine, bool contention)
      : program_(program),
        plan_(program.plan()),
        machine_(machine),
        contention_(contention),
        progress_(plan_),
        shared_(machine, queue_, plan_.micro_batches.size()),
        free_since_(plan_.schedule.size()) {
    timeline_.ranks.resize(plan_.schedule.size());
    timeline_.micro_batches.resize(plan_.micro_batches.size());
  }

  Timeline run() {
    for (std::size_t rank = 0; rank < plan_.schedule.size(); ++rank) arrive(HdpRank(rank));
    while (!queue_.empty()) {
      const Event event = queue_.pop();
      const MicroBatchId id(event.actor);
      if (event.tag == group_ended) {
        end(id);
      } else if (shared_.handle(event)) {
        end_shared(id);
      }
      if (any_shared_) shared_.follow_rate_changes();
    }
    progress_.check_all_ended();
    timeline_.events = queue_.executed();
    finish_step(program_, machine_, free_since_, timeline_);
    return std::move(timeline_);
  }

 private:
  const MicroBatch& micro_batch(MicroBatchId id) const { return plan_.micro_batches[id.index()]; }

  void arrive(HdpRank rank) {
    if (const auto ready = progress_.arrive(rank)) begin(*ready);
  }

  void begin(MicroBatchId id) {
    PricedProgram priced = price(program_, id, machine_);
    const auto ranks = static_cast<std::int64_t>(micro_batch(id).group.size());
    for (std::size_t e = 0; e < evidence_kinds; ++e) timeline_.evidence[e] += priced.evidence[e] * ranks;
    timeline_.micro_batches[id.index()].begin = queue_.now();
    for (const HdpRank rank : micro_batch(id).group) {
      Instant& free_since = free_since_[rank.index()];
      timeline_.ranks[rank.index()][Activity::group_wait] += queue_.now() - free_since;
      free_since = queue_.now();
    }
    std::vector<Hop> hops = ring_hops(micro_batch(id), machine_);
    const RingPace pace(hops, contention_);
    if (!pace.is_contended()) {
      const auto transfer = [&](Bytes bytes) { return pace.transfer(bytes); };
      const Duration total = book(id, priced, transfer);
      queue_.schedule_after(total, static_cast<std::uint32_t>(id.index()), group_ended);
      return;
    }
    any_shared_ = true;
    std::erase_if(hops, [](const Hop& hop) { return hop.is_private; });
    const double slowest = distinct_speeds(micro_batch(id), machine_).front();
    shared_.begin(id, std::move(priced), pace, std::move(hops), slowest);
  }

  // Books the time of every rank of the group, the faster ones' wait for the slowest included; returns the slowest's.
  Duration book(MicroBatchId id, const PricedProgram& priced, const TransferTime& transfer) {
    std::vector<std::pair<double, LoopTime>> by_speed;
    for (const double speed : distinct_speeds(micro_batch(id), machine_)) {
      by_speed.emplace_back(speed, micro_batch_time(priced, speed, transfer));
    }
    const Duration slowest = by_speed.front().second.total;
    for (const HdpRank rank : micro_batch(id).group) {
      const double speed = machine_.speed[rank.index()];
      const auto own = std::find_if(by_speed.begin(), by_speed.end(), [&](const auto& e) { return e.first == speed; });
      Breakdown& booked = timeline_.ranks[rank.index()];
      booked += own->second.breakdown;
      booked[Activity::group_wait] += slowest - own->second.total;
    }
    return slowest;
  }

  void end(MicroBatchId id) {
    timeline_.micro_batches[id.index()].end = queue_.now();
    for (const HdpRank rank : micro_batch(id).group) {
      free_since_[rank.index()] = queue_.now();
      progress_.advance(rank);
    }
    for (const HdpRank rank : micro_batch(id).group) arrive(rank);
  }

  // What a contended micro-batch took beyond its kernels is waiting for keys and values.
  void end_shared(MicroBatchId id) {
    const Duration kernels = book(id, shared_.priced(id), [](Bytes) { return Duration{}; });
    const Duration waited = (queue_.now() - timeline_.micro_batches[id.index()].begin) - kernels;
    for (const HdpRank rank : micro_batch(id).group) timeline_.ranks[rank.index()][Activity::cp_comm] += waited;
    shared_.forget(id);
    end(id);
  }

  const Program& program_;
  const Plan& plan_;
  Machine& machine_;
  bool contention_;
  bool any_shared_ = false;
  EventQueue queue_;
  Progress progress_;
  SharedRings shared_;
  std::vector<Instant> free_since_;  // by rank: when it ended or began its last micro-batch
  Timeline timeline_;
};

}  // namespace

Timeline simulate_fluid(const Program& program, Machine& machine, bool contention) {
  return FluidSimulation(program, machine, contention).run();
}

}  // namespace hdpsim
