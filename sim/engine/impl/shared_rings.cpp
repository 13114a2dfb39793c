#include "sim/engine/impl/shared_rings.h"

#include <algorithm>
#include <utility>

#include "sim/base/check.h"
#include "sim/engine/impl/group_run.h"

namespace hdpsim {
namespace {

// The end of a ring also carries the version of its pace.
enum Tag : std::uint32_t { ring_reached = 1, ring_ended = 2, pass_ended = 3 };
constexpr std::uint32_t tag_bits = 2;
constexpr std::uint32_t tag_mask = (1U << tag_bits) - 1;

Duration no_transfer(Bytes) {
  return {};
}

}  // namespace

struct SharedRings::Run {
  /// A segment of a block's iteration, as the slowest speed class runs it.
  struct Segment {
    Pass pass;
    Duration before;                            ///< Time before the ring.
    Duration behind;                            ///< Time after the ring.
    Duration ring_alone;                        ///< Time of the ring if transfers took no time.
    RingDemand demand;                          ///< Demand of the ring's flows.
    std::optional<HopShares> last_shares = {};  ///< Those for which the ring was last computed for this block ...
    Duration last_ring = {};                    ///< ... and the result.
  };

  std::shared_ptr<const PricedProgram> priced;
  GroupPace pace;
  std::vector<Hop> hops;
  SharedWave wave;

  std::size_t block = 0;
  std::int64_t iteration = 0;
  std::vector<Segment> segments{};  // of the block
  std::size_t segment = 0;
  Instant pass_began{};
  Duration ends{};  // see ends_of_block()

  /// What goes over one route of a hop.
  struct PartFlow {
    FlowId flow;
    const Hop* hop;
    const HopRoute* part;
    Bandwidth asked;  // what it takes at most
  };
  std::vector<PartFlow> flows{};  // while in a ring
  HopShares shares{};             // the rates of messages that set the current pace
  Instant since{};                // begin of that pace
  Duration whole{};               // time of the whole ring at that pace
  Instant earliest_end{};         // end of the ring if transfers took no time
  double done = 0;                // share of the ring that was done at `since`
  std::uint32_t version = 0;
  std::uint64_t round = 0;  // the last round of rate changes that the run has seen

  [[nodiscard]] std::int64_t iterations() const { return priced->program.blocks[block].iterations; }
  [[nodiscard]] double slowest_speed() const { return pace.classes.front().speed; }

  // Whether an iteration has kernels that the one before skipped.
  [[nodiscard]] bool differs_from_last(std::int64_t of) const {
    const std::vector<Instruction>& body = priced->program.blocks[block].body;
    return std::any_of(body.begin(), body.end(),
                       [&](const Instruction& i) { return i.stream == Stream::compute && i.first_iteration == of; });
  }
  [[nodiscard]] Segment segment_of(const Pass& pass, std::int64_t of) const {
    const Duration before = kernel_time(*priced, block, pass.before, slowest_speed(), of);
    const Duration behind = kernel_time(*priced, block, pass.behind, slowest_speed(), of);
    if (!pass.has_ring()) return {pass, std::max(before + pass.tail, pass.copy), behind, {}, {}};
    return {pass, before, behind, ring_time(*priced, block, pass.ring, slowest_speed(), no_transfer),
            ring_demand(*priced, block, pass.ring, slowest_speed())};
  }
  [[nodiscard]] std::vector<Segment> segments_of(std::int64_t of) const {
    std::vector<Segment> all;
    for (const Pass& pass : pass_through(*priced, block)) {
      all.push_back(segment_of(pass, of));
    }
    return all;
  }

  // How long a layer that has computed for `pass` waits: its copy overlaps with the whole iteration of another layer;
  // the first and the last layer wait for no copy, but the last one for its reductions.
  [[nodiscard]] Duration stall(const Pass& last, Duration pass, std::int64_t of) const {
    if (of + 1 == iterations()) return last.tail;
    return of > 0 ? std::max(Duration{}, last.copy - pass) : Duration{};
  }

  // What a block takes in addition to its layers one by one where nothing shares its links: collectives over the pool
  // that no layer hides, before the first layer and around the last one.
  [[nodiscard]] Duration ends_of_block() const {
    if (!segments.front().pass.has_ring() || segments.back().pass.copy == Duration{}) return {};
    const auto alone = [&](Bytes bytes) { return pace.all.transfer(bytes); };
    Duration layers;
    Duration computes;
    for (std::int64_t i = 0; i < iterations(); ++i) {
      if (i == 0 || differs_from_last(i)) computes = time_of(i == 0 ? segments : segments_of(i), alone);
      layers += computes + stall(segments.back().pass, computes, i);
    }
    const BodyRange body{0, priced->program.blocks[block].body.size()};
    return std::max(Duration{}, loop_time(*priced, block, body, slowest_speed(), alone).total - layers);
  }

  // Kernels and rings of one iteration.
  [[nodiscard]] Duration time_of(const std::vector<Segment>& all, const TransferTime& transfer) const {
    Duration sum;
    for (const Segment& each : all) {
      sum += each.before + ring_time(*priced, block, each.pass.ring, slowest_speed(), transfer) + each.behind;
    }
    return sum;
  }

  // The shares are mostly the same layer after layer, so that the last result is kept.
  [[nodiscard]] Duration ring_at(const HopShares& at) {
    Segment& own = segments[segment];
    if (own.last_shares != at) {
      own.last_shares = at;
      own.last_ring = ring(own, at);
    }
    return own.last_ring;
  }

  // Each speed class has its own kernels and hops, and the longest time of a class is that of all. The ring takes this
  // time less the parts before and after the ring.
  [[nodiscard]] Duration ring(const Segment& of, const HopShares& at) const {
    Duration longest;
    const Pass& pass = of.pass;
    const auto slowest_hop = [&](Bytes bytes) { return pace.all.transfer(bytes, at); };
    for (const SpeedClass& c : pace.classes) {
      const auto own_hops = [&](Bytes bytes) { return c.own.transfer(bytes, at); };
      const Duration slowest = ring_time(*priced, block, pass.ring, c.speed, slowest_hop);
      const Duration own = c.slow_fraction < 1 ? ring_time(*priced, block, pass.ring, c.speed, own_hops) : slowest;
      longest = std::max(longest, kernel_time(*priced, block, pass.before, c.speed, iteration) +
                                      between(own, slowest, c.slow_fraction) +
                                      kernel_time(*priced, block, pass.behind, c.speed, iteration));
    }
    return std::max(of.ring_alone, longest - of.before - of.behind);
  }
};

SharedRings::SharedRings(JobFlows& flows, JobQueue& queue, std::size_t passes)
    : flows_(flows), queue_(queue), runs_(passes), at_layer_(passes) {}

SharedRings::~SharedRings() = default;

void SharedRings::begin(PassId id, std::shared_ptr<const PricedProgram> priced, GroupPace pace, std::vector<Hop> hops,
                        const SharedWave& wave) {
  runs_[id.index()] = std::make_unique<Run>(Run{std::move(priced), std::move(pace), std::move(hops), wave});
  enter_block(id);
}

bool SharedRings::handle(const Event& event) {
  const PassId id(event.actor);
  switch (event.tag & tag_mask) {
    case ring_reached:
      enter_ring(id);
      return false;
    case ring_ended:
      // An end at an outdated pace, or of a pass that has ended, is ignored.
      if (is_running(id) && event.tag >> tag_bits == runs_[id.index()]->version) leave_ring(id);
      return false;
    default:
      return end_pass(id);
  }
}

void SharedRings::enter_block(PassId id) {
  runs_[id.index()]->iteration = 0;
  enter_pass(id);
}

void SharedRings::enter_pass(PassId id) {
  Run& run = *runs_[id.index()];
  if (run.iteration == 0 || run.differs_from_last(run.iteration)) run.segments = run.segments_of(run.iteration);
  if (run.iteration == 0) run.ends = run.ends_of_block();
  run.pass_began = queue_.now();
  run.segment = 0;
  const Run::Segment& first = run.segments.front();
  if (first.pass.has_ring()) return schedule(id, first.before, ring_reached);
  run.iteration = run.iterations() - 1;
  schedule(id, first.before * run.iterations(), pass_ended);
}

void SharedRings::enter_ring(PassId id) {
  Run& run = *runs_[id.index()];
  for (const Hop& hop : run.hops) {
    const Bandwidth rate = run.segments[run.segment].demand.rate(hop.latency);
    for (const HopRoute& part : hop.routes) {
      const Bandwidth asked = part.of_part(rate);
      // Weights let parts and whole messages on one link end together.
      const auto key = static_cast<std::uint32_t>(id.index());
      run.flows.push_back({flows_.add(part.route, asked, key, part.share), &hop, &part, asked});
    }
  }
  run.earliest_end = queue_.now() + run.segments[run.segment].ring_alone;
  run.since = queue_.now();
  run.whole = Duration{};
  run.done = 0;
  set_pace(id, shares_of(run));
}

void SharedRings::leave_ring(PassId id) {
  Run& run = *runs_[id.index()];
  for (const Run::PartFlow& each : run.flows) flows_.remove(each.flow);
  run.flows.clear();
  run.version = queue_.fresh_version();
  if (run.segment + 1 < run.segments.size()) return schedule(id, run.segments[++run.segment].before, ring_reached);
  const Run::Segment& last = run.segments.back();
  Duration stall = run.stall(last.pass, queue_.now() + last.behind - run.pass_began, run.iteration);
  if (run.iteration + 1 == run.iterations()) stall += run.ends;
  schedule(id, last.behind + stall, pass_ended);
}

bool SharedRings::end_pass(PassId id) {
  Run& run = *runs_[id.index()];
  if (++run.iteration < run.iterations()) {
    meet_wave(id);
    return false;
  }
  if (++run.block == run.priced->program.blocks.size()) return true;
  enter_block(id);
  return false;
}

void SharedRings::meet_wave(PassId id) {
  const Run& run = *runs_[id.index()];
  if (run.priced->program.blocks[run.block].exchanged_experts.empty()) return enter_pass(id);
  std::vector<PassId>& here = at_layer_[run.wave.index];
  here.push_back(id);
  if (here.size() < run.wave.passes) return;
  for (const PassId member : std::exchange(here, {})) enter_pass(member);
}

// A ring asks for the rate that its messages need on average while they overlap with kernels. Where the links of a hop
// provide this rate, it has no limit: each message takes the whole link while it travels, so that the last messages,
// which overlap with no kernel, are not delayed.
HopShares SharedRings::shares_of(const Run& run) const {
  HopShares shares;
  for (const Run::PartFlow& each : run.flows) {
    const Bandwidth rate = flows_.rate(each.flow);
    if (rate < each.asked) shares.limit({each.hop->latency, each.hop->alone}, each.part->of_message(rate));
  }
  return shares;
}

void SharedRings::set_pace(PassId id, HopShares shares) {
  Run& run = *runs_[id.index()];
  if (run.whole > Duration{}) run.done += (queue_.now() - run.since).seconds() / run.whole.seconds();
  run.shares = std::move(shares);
  run.since = queue_.now();
  run.whole = run.ring_at(run.shares);
  run.version = queue_.fresh_version();
  const Instant end = queue_.now() + run.whole.scaled(std::max(0.0, 1 - run.done));
  schedule(id, std::max(end, run.earliest_end) - queue_.now(), ring_ended | (run.version << tag_bits));
}

void SharedRings::schedule(PassId id, Duration delay, std::uint32_t tag) {
  queue_.schedule_after(delay, static_cast<std::uint32_t>(id.index()), tag);
}

void SharedRings::rate_changed(PassId id) {
  Run& run = *runs_[id.index()];
  if (run.round == flows_.round()) return;
  run.round = flows_.round();
  HopShares shares = shares_of(run);
  if (shares != run.shares) set_pace(id, std::move(shares));
}

bool SharedRings::is_running(PassId id) const {
  return id.index() < runs_.size() && runs_[id.index()] != nullptr;
}

std::optional<double> SharedRings::share_sent(PassId id) const {
  if (!is_running(id)) return std::nullopt;
  const Run& run = *runs_[id.index()];
  return hdpsim::share_sent(run.priced->program, run.block, run.iteration);
}

const PricedProgram& SharedRings::priced(PassId id) const {
  HDPSIM_CHECK(runs_[id.index()] != nullptr, "pass {} does not share links", id.index());
  return *runs_[id.index()]->priced;
}

void SharedRings::forget(PassId id) {
  runs_[id.index()].reset();
}

}  // namespace hdpsim
