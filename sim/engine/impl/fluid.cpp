#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sim/engine/impl/connection_set_up.h"
#include "sim/engine/impl/group_run.h"
#include "sim/engine/impl/pass_prices.h"
#include "sim/engine/impl/shared_rings.h"
#include "sim/engine/impl/step_run.h"

namespace hdpsim {
namespace {

// All other tags belong to SharedRings.
constexpr std::uint32_t group_ended = 0;
constexpr std::uint32_t weights_ended = 4;  // the actor is the worker

/// The time of a pass on ranks of any speed, computed once per speed.
class TimeBySpeed {
 public:
  /// The program must outlive this object.
  TimeBySpeed(const PricedProgram& priced, TransferTime transfer) : priced_(priced), transfer_(std::move(transfer)) {}

  const LoopTime& operator[](double speed) {
    const auto known = std::find_if(times_.begin(), times_.end(), [&](const auto& e) { return e.first == speed; });
    if (known != times_.end()) return known->second;
    return times_.emplace_back(speed, micro_batch_time(priced_, speed, transfer_)).second;
  }

 private:
  const PricedProgram& priced_;
  TransferTime transfer_;
  std::vector<std::pair<double, LoopTime>> times_;
};

class FluidStep final : public StepRun {
 public:
  FluidStep(const StepSetting& setting, bool contention)
      : StepRun(setting, contention),
        contention_(contention),
        prices_(program_, machine_, setting.forms),
        set_up_(setting.connections),
        shared_(flows_, queue_, pipeline_.passes()),
        margins_(pipeline_.passes()),
        waves_(pipeline_.passes()),
        sharing_(pipeline_.passes()),
        slowest_expert_(slowest_experts()) {}

  void handle_pass(const Event& event) override {
    if (event.tag == weights_ended) return end_weights(WorkerId(event.actor));
    const PassId id(event.actor);
    if (event.tag == group_ended) {
      end(id);
    } else if (shared_.handle(event)) {
      end_shared(id);
    }
  }

  void pass_rate_changed(std::uint32_t key) override { shared_.rate_changed(PassId(key)); }

  [[nodiscard]] double share_sent(PassId id) const override {
    if (const auto share = shared_.share_sent(id)) return *share;
    const auto& [begun, ends] = intervals_[id.index()];
    if (ends <= queue_.now()) return 1;  // ended, or not begun
    return (queue_.now() - begun).seconds() / (ends - begun).seconds();
  }

 private:
  void arrive(WorkerId worker, PassId pass, bool all_are_here) override {
    if (pipeline_.pass(pass).kind == PassKind::weight_gradient) {
      begin_weights(worker, pass);
    } else if (all_are_here) {
      begin(pass);
    }
  }

  // Weight gradients need no ring: each worker runs at its own pace.
  void begin_weights(WorkerId worker, PassId id) {
    const std::shared_ptr<const PricedProgram> priced = prices_.of(id, {});
    const auto no_transfer = [](Bytes) { return Duration{}; };
    const LoopTime time = micro_batch_time(*priced, machine_.speed[worker.index()], no_transfer);
    add_evidence(*priced, {&worker, 1}, machine_, timeline_.evidence);
    count_collectives(id, *priced, {&worker, 1});
    timeline_.ranks[worker.index()] += time.breakdown;
    MicroBatchInterval& interval = intervals_[id.index()];
    if (interval.end == Instant{}) interval.begin = queue_.now();
    interval.end = std::max(interval.end, queue_.now() + time.total);
    queue_.schedule_after(time.total, static_cast<std::uint32_t>(worker.index()), weights_ended);
  }

  void end_weights(WorkerId worker) {
    end_pass(worker);
    go_on(worker);
  }

  void begin(PassId id) {
    if (const std::optional<SerialPass> serial = serial_pass(id)) return begin_serial(id, *serial);
    const MicroBatch& micro_batch = pipeline_.micro_batch(id);
    const std::int64_t stage = pipeline_.pass(id).stage;
    const std::vector<WorkerId> group = pipeline_.group(id);
    std::vector<Hop> hops = ring_hops(program_, id, machine_);
    const std::shared_ptr<const PricedProgram> priced =
        delayed(prices_.of(id, hops), set_up_.connect(micro_batch.group, stage));
    add_evidence(*priced, group, machine_, timeline_.evidence);
    intervals_[id.index()].begin = queue_.now();
    for (const WorkerId worker : group) {
      Instant& free_since = free_since_[worker.index()];
      timeline_.ranks[worker.index()][Activity::group_wait] += queue_.now() - free_since;
      free_since = queue_.now();
    }
    add_ring_traffic(priced->program, hops, 1, links_);
    count_collectives(id, *priced, group);
    const bool in_wave = pipeline_.wave_size(id) > 1;
    GroupPace pace = group_pace(group, hops, machine_,
                                {.contention = contention_,
                                 .begins_together = in_wave || !priced->program.shares.empty(),
                                 .sharing = priced->program.sharing});
    if (in_wave) {
      const auto slowest_hop = [&](Bytes bytes) { return pace.all.transfer(bytes); };
      margins_[id.index()] = margins(*priced, pace.classes.front().speed, slowest_hop);
    }
    if (!pace.all.is_contended()) return end_at(id, queue_.now() + private_time(group, *priced, pace), false);
    std::erase_if(hops, [](const Hop& hop) { return hop.is_private; });
    if (margins_[id.index()]) waves_[pipeline_.wave_index(id)].begin_shared(queue_.now(), *margins_[id.index()]);
    shared_.begin(id, priced, std::move(pace), std::move(hops), shared_wave(id));
  }

  // A pass of one rank whose time is a sum; empty where it takes part in more than its instructions.
  [[nodiscard]] std::optional<SerialPass> serial_pass(PassId id) {
    const MicroBatch& micro_batch = pipeline_.micro_batch(id);
    if (micro_batch.group.size() > 1 || pipeline_.wave_size(id) > 1) return std::nullopt;
    if (machine_.speed[only_worker(id).index()] != 1) return std::nullopt;
    return prices_.serial(id);
  }

  [[nodiscard]] WorkerId only_worker(PassId id) const {
    return pipeline_.worker(pipeline_.micro_batch(id).group.front(), pipeline_.pass(id).stage);
  }

  void begin_serial(PassId id, const SerialPass& pass) {
    const WorkerId worker = only_worker(id);
    for (std::size_t e = 0; e < evidence_kinds; ++e) timeline_.evidence[e].add(pass.evidence[e], 1);
    intervals_[id.index()].begin = queue_.now();
    collectives_.add(pass.traffic->sets, {&worker, 1}, 1);
    Breakdown& booked = timeline_.ranks[worker.index()];
    booked[Activity::group_wait] += queue_.now() - free_since_[worker.index()];
    booked += pass.times;
    free_since_[worker.index()] = queue_.now();
    end_at(id, queue_.now() + pass.times.total(), false);
  }

  static std::shared_ptr<const PricedProgram> delayed(std::shared_ptr<const PricedProgram> priced, Duration delay) {
    if (delay == Duration{}) return priced;
    auto own = std::make_shared<PricedProgram>(*priced);
    own->delay_start(delay);
    return own;
  }

  // The wave of a pass, with its number of passes that share links, which is counted once per wave.
  [[nodiscard]] SharedWave shared_wave(PassId id) {
    const std::size_t index = pipeline_.wave_index(id);
    std::size_t& passes = sharing_[index];
    if (passes == 0) {
      const std::vector<PassId> wave = pipeline_.wave(id);
      passes = static_cast<std::size_t>(
          std::count_if(wave.begin(), wave.end(), [&](PassId member) { return shares_links(member); }));
    }
    return {index, passes};
  }

  [[nodiscard]] bool shares_links(PassId id) const {
    const std::vector<Hop> hops = ring_hops(program_, id, machine_);
    return std::any_of(hops.begin(), hops.end(), [](const Hop& hop) { return !hop.is_private; });
  }

  // A pass by itself ends at `ended`. The passes of a wave end together, as soon as the ends of all of them are known.
  void end_at(PassId id, Instant ended, bool shared) {
    intervals_[id.index()].end = ended;
    if (!margins_[id.index()]) return schedule_end(id);
    WaveRun& wave = waves_[pipeline_.wave_index(id)];
    wave.add(intervals_[id.index()].begin, ended + wait_for_experts(id), *margins_[id.index()], shared);
    if (wave.passes() < pipeline_.wave_size(id)) return;
    for (const PassId member : pipeline_.wave(id)) {
      Instant& end = intervals_[member.index()].end;
      const Instant together = std::max(queue_.now(), wave.end(*margins_[member.index()]));
      for (const WorkerId worker : pipeline_.group(member)) {
        timeline_.ranks[worker.index()][Activity::group_wait] += together - end;
      }
      end = together;
      schedule_end(member);
    }
  }

  // How much longer experts take on the slowest worker of the expert groups that a pass takes part in than on the
  // slowest worker of the pass, whose time is the pass's own time.
  [[nodiscard]] Duration wait_for_experts(PassId id) const {
    double own = 1e9;
    double met = 1e9;
    for (const WorkerId worker : pipeline_.group(id)) {
      own = std::min(own, machine_.speed[worker.index()]);
      met = std::min(met, slowest_expert_[worker.index()]);
    }
    return margins_[id.index()]->experts.scaled(1 / met - 1 / own);
  }

  // By worker: the speed of the slowest worker of its expert group.
  [[nodiscard]] std::vector<double> slowest_experts() const {
    std::vector<double> slowest = machine_.speed;
    const auto ranks = static_cast<std::size_t>(program_.plan().expert_ranks);
    const auto stages = static_cast<std::size_t>(pipeline_.stages());
    const auto first_of_group = [&](std::size_t w) { return w / stages / ranks * ranks * stages + w % stages; };
    for (std::size_t w = 0; w < pipeline_.workers(); ++w) {
      double& of_group = slowest[first_of_group(w)];
      of_group = std::min(of_group, machine_.speed[w]);
    }
    for (std::size_t w = 0; w < pipeline_.workers(); ++w) slowest[w] = slowest[first_of_group(w)];
    return slowest;
  }

  void schedule_end(PassId id) {
    const Duration left = intervals_[id.index()].end - queue_.now();
    queue_.schedule_after(left, static_cast<std::uint32_t>(id.index()), group_ended);
  }

  // The time of a pass that has its links to itself; books it for every worker of the group.
  Duration private_time(const std::vector<WorkerId>& group, const PricedProgram& priced, const GroupPace& pace) {
    TimeBySpeed at_slowest_hop(priced, [&](Bytes bytes) { return pace.all.transfer(bytes); });
    Duration longest;
    for (const SpeedClass& c : pace.classes) {
      const auto own_hops = [&](Bytes bytes) { return c.own.transfer(bytes); };
      const Duration slowest = at_slowest_hop[c.speed].total;
      const Duration own = c.slow_fraction < 1 ? micro_batch_time(priced, c.speed, own_hops).total : slowest;
      longest = std::max(longest, between(own, slowest, c.slow_fraction));
    }
    book(group, at_slowest_hop, longest);
    return longest;
  }

  // Books `total` for every worker of the group: its kernels, its wait for messages at the pace of the ring's slowest
  // hop (as far as total leaves room for it), and the rest as waiting for slower ranks.
  void book(const std::vector<WorkerId>& group, TimeBySpeed& times, Duration total) {
    for (const WorkerId worker : group) {
      const LoopTime& own = times[machine_.speed[worker.index()]];
      const Duration rest = total - own.total;
      Breakdown& booked = timeline_.ranks[worker.index()];
      booked += own.breakdown;
      booked[rest < Duration{} ? Activity::cp_comm : Activity::group_wait] += rest;
    }
  }

  void end(PassId id) {
    if (pipeline_.micro_batch(id).group.size() == 1) {
      const WorkerId worker = only_worker(id);
      end_pass(worker);
      return go_on(worker);
    }
    const std::vector<WorkerId> group = pipeline_.group(id);
    for (const WorkerId worker : group) end_pass(worker);
    for (const WorkerId worker : group) go_on(worker);
  }

  // The time of a contended pass beyond the kernels of its slowest worker is booked as waiting for keys and values.
  void end_shared(PassId id) {
    const PricedProgram& priced = shared_.priced(id);
    const std::vector<WorkerId> group = pipeline_.group(id);
    const auto no_transfer = [](Bytes) { return Duration{}; };
    double slowest = machine_.speed[group.front().index()];
    for (const WorkerId worker : group) slowest = std::min(slowest, machine_.speed[worker.index()]);
    TimeBySpeed kernel_times(priced, no_transfer);
    const Duration kernels = kernel_times[slowest].total;
    const Duration total = queue_.now() - intervals_[id.index()].begin;
    book(group, kernel_times, kernels);
    for (const WorkerId worker : group) timeline_.ranks[worker.index()][Activity::cp_comm] += total - kernels;
    shared_.forget(id);
    if (margins_[id.index()]) return end_at(id, queue_.now(), true);
    intervals_[id.index()].end = queue_.now();
    end(id);
  }

  bool contention_;
  PassPrices prices_;
  ConnectionSetUp& set_up_;
  SharedRings shared_;
  std::vector<std::optional<Margins>> margins_;  // by pass; empty unless it runs in a wave of several
  std::vector<WaveRun> waves_;                   // by wave
  std::vector<std::size_t> sharing_;    // by wave: number of passes whose rings share links; 0: not counted yet
  std::vector<double> slowest_expert_;  // by worker
};

}  // namespace

std::unique_ptr<StepRun> make_fluid_step(const StepSetting& setting, bool contention) {
  return std::make_unique<FluidStep>(setting, contention);
}

}  // namespace hdpsim
