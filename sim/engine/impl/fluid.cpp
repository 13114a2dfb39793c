#include <algorithm>

#include "sim/engine/impl/connection_set_up.h"
#include "sim/engine/impl/group_run.h"
#include "sim/engine/impl/ring_traffic.h"
#include "sim/engine/impl/shared_rings.h"
#include "sim/engine/impl/step_run.h"

namespace hdpsim {
namespace {

constexpr std::uint32_t group_ended = 0;  // other tags are those of SharedRings

class FluidStep final : public StepRun {
 public:
  FluidStep(const StepSetting& setting, bool contention)
      : StepRun(setting),
        contention_(contention),
        set_up_(machine_),
        shared_(flows_, queue_, plan_.micro_batches.size()) {}

  void begin() override {
    for (std::size_t rank = 0; rank < plan_.schedule.size(); ++rank) arrive(HdpRank(rank));
  }

  void handle(const Event& event) override {
    const MicroBatchId id(event.actor);
    if (event.tag == group_ended) {
      end(id);
    } else if (shared_.handle(event)) {
      end_shared(id);
    }
  }

  void rate_changed(std::uint32_t key) override { shared_.rate_changed(MicroBatchId(key)); }

  [[nodiscard]] double share_sent(MicroBatchId id) const override {
    if (const auto share = shared_.share_sent(id)) return *share;
    const auto& [begun, ends] = timeline_.micro_batches[id.index()];
    if (ends <= queue_.now()) return 1;  // or not begun
    return (queue_.now() - begun).seconds() / (ends - begun).seconds();
  }

 private:
  [[nodiscard]] const MicroBatch& micro_batch(MicroBatchId id) const { return plan_.micro_batches[id.index()]; }

  void arrive(HdpRank rank) {
    if (const auto ready = progress_.arrive(rank)) begin(*ready);
  }

  void begin(MicroBatchId id) {
    PricedProgram priced = price(program_, id, machine_);
    priced.delay_start(set_up_.connect(micro_batch(id).group));
    const auto ranks = static_cast<std::int64_t>(micro_batch(id).group.size());
    for (std::size_t e = 0; e < evidence_kinds; ++e) timeline_.evidence[e].add(priced.evidence[e], ranks);
    timeline_.micro_batches[id.index()].begin = queue_.now();
    for (const HdpRank rank : micro_batch(id).group) {
      Instant& free_since = free_since_[rank.index()];
      timeline_.ranks[rank.index()][Activity::group_wait] += queue_.now() - free_since;
      free_since = queue_.now();
    }
    std::vector<Hop> hops = ring_hops(micro_batch(id), machine_);
    add_ring_traffic(priced.program, hops, 1, link_bytes_);
    GroupPace pace = group_pace(micro_batch(id), hops, machine_, contention_);
    if (!pace.all.is_contended()) {
      const Duration time = private_time(id, priced, pace);
      timeline_.micro_batches[id.index()].end = queue_.now() + time;
      queue_.schedule_after(time, static_cast<std::uint32_t>(id.index()), group_ended);
      return;
    }
    std::erase_if(hops, [](const Hop& hop) { return hop.is_private; });
    shared_.begin(id, std::move(priced), std::move(pace), std::move(hops));
  }

  // How long the micro-batch takes with its links to itself; books it for every rank of the group.
  Duration private_time(MicroBatchId id, const PricedProgram& priced, const GroupPace& pace) {
    const auto slowest_hop = [&](Bytes bytes) { return pace.all.transfer(bytes); };
    Duration longest;
    for (const SpeedClass& c : pace.classes) {
      const auto own_hops = [&](Bytes bytes) { return c.own.transfer(bytes); };
      const Duration slowest = micro_batch_time(priced, c.speed, slowest_hop).total;
      const Duration own = c.reach < 1 ? micro_batch_time(priced, c.speed, own_hops).total : slowest;
      longest = std::max(longest, between(own, slowest, c.reach));
    }
    book(id, priced, slowest_hop, longest);
    return longest;
  }

  // Books `total` for every rank of the group: its kernels, its wait for messages at the pace of the ring's slowest
  // hop (as far as total leaves room for it), and the rest as waiting for slower ranks.
  void book(MicroBatchId id, const PricedProgram& priced, const TransferTime& transfer, Duration total) {
    std::vector<std::pair<double, LoopTime>> by_speed;
    for (const HdpRank rank : micro_batch(id).group) {
      const double speed = machine_.speed[rank.index()];
      auto own = std::find_if(by_speed.begin(), by_speed.end(), [&](const auto& e) { return e.first == speed; });
      if (own == by_speed.end()) {
        by_speed.emplace_back(speed, micro_batch_time(priced, speed, transfer));
        own = by_speed.end() - 1;
      }
      const Duration rest = total - own->second.total;
      Breakdown& booked = timeline_.ranks[rank.index()];
      booked += own->second.breakdown;
      booked[rest < Duration{} ? Activity::cp_comm : Activity::group_wait] += rest;
    }
  }

  void end(MicroBatchId id) {
    timeline_.micro_batches[id.index()].end = queue_.now();
    for (const HdpRank rank : micro_batch(id).group) {
      free_since_[rank.index()] = queue_.now();
      progress_.advance(rank);
    }
    for (const HdpRank rank : micro_batch(id).group) arrive(rank);
  }

  // What a contended micro-batch took beyond the kernels of its slowest rank is waiting for keys and values.
  void end_shared(MicroBatchId id) {
    const PricedProgram& priced = shared_.priced(id);
    const auto no_transfer = [](Bytes) { return Duration{}; };
    double slowest = machine_.speed[micro_batch(id).group.front().index()];
    for (const HdpRank rank : micro_batch(id).group) slowest = std::min(slowest, machine_.speed[rank.index()]);
    const Duration kernels = micro_batch_time(priced, slowest, no_transfer).total;
    const Duration total = queue_.now() - timeline_.micro_batches[id.index()].begin;
    book(id, priced, no_transfer, kernels);
    for (const HdpRank rank : micro_batch(id).group)
      timeline_.ranks[rank.index()][Activity::cp_comm] += total - kernels;
    shared_.forget(id);
    end(id);
  }

  bool contention_;
  ConnectionSetUp set_up_;
  SharedRings shared_;
};

}  // namespace

std::unique_ptr<StepRun> make_fluid_step(const StepSetting& setting, bool contention) {
  return std::make_unique<FluidStep>(setting, contention);
}

}  // namespace hdpsim
