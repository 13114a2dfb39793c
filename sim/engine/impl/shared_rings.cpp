#include "sim/engine/impl/shared_rings.h"

#include <algorithm>

#include "sim/base/check.h"

namespace hdpsim {
namespace {

enum Tag : std::uint32_t { fixed_ended = 1, ring_ended = 2 };  // a ring's tag also carries the version of its pace
constexpr std::uint32_t tag_bits = 2;
constexpr std::uint32_t tag_mask = (1U << tag_bits) - 1;

}  // namespace

struct SharedRings::Run {
  PricedProgram priced;
  RingPace pace;
  std::vector<Hop> hops;
  double speed = 1;

  std::size_t block = 0;
  std::int64_t iteration = 0;
  std::vector<Segment> segments{};  // of the block
  std::size_t segment = 0;

  std::vector<FlowId> flows{};  // while in a ring
  Bandwidth share{};            // the rate that sets the present pace
  Instant since{};              // of that pace
  Duration pass{};              // the whole ring segment at that pace
  Instant earliest_end{};       // the kernels of the ring alone
  double done = 0;            // share of the ring segment
  std::uint32_t version = 0;

  [[nodiscard]] const Segment& current() const { return segments[segment]; }
  [[nodiscard]] std::int64_t iterations() const { return priced.program.blocks[block].iterations; }
};

SharedRings::SharedRings(Machine& machine, EventQueue& queue, std::size_t micro_batches)
    : machine_(machine), queue_(queue), runs_(micro_batches) {}

SharedRings::~SharedRings() = default;

void SharedRings::begin(MicroBatchId id, PricedProgram priced, const RingPace& pace, std::vector<Hop> hops,
                        double slowest_speed) {
  auto& run = runs_[id.index()];
  run = std::make_unique<Run>(Run{std::move(priced), pace, std::move(hops), slowest_speed});
  run->segments = segments_of(run->priced, 0, run->speed);
  enter_segment(id);
}

bool SharedRings::handle(const Event& event) {
  const MicroBatchId id(event.actor);
  if ((event.tag & tag_mask) == fixed_ended) return next_segment(id);
  Run* run = runs_[id.index()].get();
  // An event of a pace that has changed since, or of a micro-batch that has ended, means nothing.
  if (run == nullptr || event.tag >> tag_bits != run->version) return false;
  leave_ring(*run);
  return next_segment(id);
}

bool SharedRings::next_segment(MicroBatchId id) {
  Run& run = *runs_[id.index()];
  if (++run.segment == run.segments.size()) {
    const bool one_segment_holds_all_iterations = run.segments.size() == 1;
    run.segment = 0;
    if (one_segment_holds_all_iterations || ++run.iteration == run.iterations()) {
      run.iteration = 0;
      if (++run.block == run.priced.program.blocks.size()) return true;
      run.segments = segments_of(run.priced, run.block, run.speed);
    }
  }
  enter_segment(id);
  return false;
}

void SharedRings::enter_segment(MicroBatchId id) {
  const Segment& segment = runs_[id.index()]->current();
  if (segment.ring) return enter_ring(id);
  queue_.schedule_after(segment.fixed, static_cast<std::uint32_t>(id.index()), fixed_ended);
}

void SharedRings::enter_ring(MicroBatchId id) {
  Run& run = *runs_[id.index()];
  const Bandwidth demand = ring_demand(run.priced, run.current(), run.speed);
  for (const Hop& hop : run.hops) {
    for (const Route& route : hop.routes) {
      const FlowId flow = machine_.network->add(route, demand);
      if (owners_.size() <= flow.index()) owners_.resize(flow.index() + 1);
      owners_[flow.index()] = id;
      run.flows.push_back(flow);
    }
  }
  const Duration kernels = ring_time(run.priced, run.current(), run.speed, [](Bytes) { return Duration{}; });
  run.earliest_end = queue_.now() + kernels;
  run.since = queue_.now();
  run.pass = Duration{};
  run.done = 0;
  set_pace(id, slowest_share(run));
}

void SharedRings::leave_ring(Run& run) {
  for (const FlowId flow : run.flows) machine_.network->remove(flow);
  run.flows.clear();
  ++run.version;
}

Bandwidth SharedRings::slowest_share(const Run& run) const {
  Bandwidth share = machine_.network->rate(run.flows.front());
  for (const FlowId flow : run.flows) share = std::min(share, machine_.network->rate(flow));
  return share;
}

void SharedRings::set_pace(MicroBatchId id, Bandwidth share) {
  Run& run = *runs_[id.index()];
  if (run.pass > Duration{}) run.done += (queue_.now() - run.since).seconds() / run.pass.seconds();
  run.share = share;
  run.since = queue_.now();
  run.pass = ring_time(run.priced, run.current(), run.speed,
                       [&](Bytes bytes) { return run.pace.transfer(bytes, share); });
  const Instant end = queue_.now() + run.pass.scaled(std::max(0.0, 1 - run.done));
  run.version = (run.version + 1) & (UINT32_MAX >> tag_bits);
  queue_.schedule(std::max(end, run.earliest_end), static_cast<std::uint32_t>(id.index()),
                  ring_ended | (run.version << tag_bits));
}

void SharedRings::follow_rate_changes() {
  changed_.clear();
  machine_.network->take_changed(changed_);
  for (const FlowId flow : changed_) {
    const MicroBatchId id = owners_[flow.index()];
    const Bandwidth share = slowest_share(*runs_[id.index()]);
    if (share != runs_[id.index()]->share) set_pace(id, share);
  }
}

const PricedProgram& SharedRings::priced(MicroBatchId id) const {
  HDPSIM_CHECK(runs_[id.index()] != nullptr, "micro-batch {} does not share links", id.index());
  return runs_[id.index()]->priced;
}

void SharedRings::forget(MicroBatchId id) {
  runs_[id.index()].reset();
}

}  // namespace hdpsim
