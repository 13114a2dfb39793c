#include "sim/engine/impl/group_run.h"

#include <algorithm>

namespace hdpsim {
namespace {

Duration no_transfer(Bytes) { return {}; }

// Where the ring of a body begins and ends; empty without one.
BodyRange ring_range(const Block& block) {
  BodyRange range{block.body.size(), 0};
  for (std::size_t i = 0; i < block.body.size(); ++i) {
    const Opcode opcode = block.body[i].opcode;
    if (opcode == Opcode::exchange) range.first = std::min(range.first, i);
    if (opcode == Opcode::exchange || opcode == Opcode::attention || opcode == Opcode::merge) range.last = i + 1;
  }
  if (range.first >= range.last) return {0, 0};
  return range;
}

// One pass of a range without what the iterations owe each other.
Duration one_pass(const PricedProgram& priced, std::size_t block, BodyRange range, double speed) {
  Duration sum;
  for (std::size_t i = range.first; i < range.last; ++i) {
    if (priced.program.blocks[block].body[i].stream == Stream::compute) sum += priced.time(block, i, speed);
  }
  return sum;
}

}  // namespace

RingPace::RingPace(const std::vector<Hop>& hops, bool contention) {
  for (const Hop& hop : hops) {
    std::vector<Kind>& kinds = contention && !hop.is_private ? contended_ : private_;
    const Kind kind{hop.latency, hop.alone};
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
  }
}

Duration RingPace::transfer(Bytes bytes) const {
  Duration slowest;
  for (const auto* kinds : {&private_, &contended_}) {
    for (const Kind& kind : *kinds) slowest = std::max(slowest, kind.latency + bytes / kind.alone);
  }
  return slowest;
}

Duration RingPace::transfer(Bytes bytes, Bandwidth shared) const {
  Duration slowest;
  for (const Kind& kind : private_) slowest = std::max(slowest, kind.latency + bytes / kind.alone);
  for (const Kind& kind : contended_) slowest = std::max(slowest, kind.latency + bytes / std::min(kind.alone, shared));
  return slowest;
}

LoopTime micro_batch_time(const PricedProgram& priced, double speed, const TransferTime& transfer) {
  LoopTime sum;
  for (std::size_t block = 0; block < priced.program.blocks.size(); ++block) {
    const BodyRange whole{0, priced.program.blocks[block].body.size()};
    const LoopTime time = loop_time(priced, block, whole, speed, transfer);
    sum.total += time.total;
    sum.breakdown += time.breakdown;
  }
  return sum;
}

std::vector<double> distinct_speeds(const MicroBatch& micro_batch, const Machine& machine) {
  std::vector<double> speeds;
  for (const HdpRank rank : micro_batch.group) {
    const double speed = machine.speed[rank.index()];
    if (std::find(speeds.begin(), speeds.end(), speed) == speeds.end()) speeds.push_back(speed);
  }
  std::sort(speeds.begin(), speeds.end());
  return speeds;
}

std::vector<Segment> segments_of(const PricedProgram& priced, std::size_t block, double speed) {
  const Block& loop = priced.program.blocks[block];
  const BodyRange whole{0, loop.body.size()};
  const BodyRange ring = ring_range(loop);
  if (ring.last == 0) {
    const LoopTime time = loop_time(priced, block, whole, speed, no_transfer);
    return {{false, time.total, block, whole}};
  }
  // What copies to the host add to the loop beyond one pass at a time is spread evenly over the passes.
  const Duration all = loop_time(priced, block, whole, speed, no_transfer).total;
  const Duration stalls = all - one_pass(priced, block, whole, speed) * loop.iterations;
  const Duration stall = Duration::picoseconds((stalls.picoseconds() + loop.iterations - 1) / loop.iterations);
  return {{false, one_pass(priced, block, {0, ring.first}, speed), block, {0, ring.first}},
          {true, {}, block, ring},
          {false, one_pass(priced, block, {ring.last, whole.last}, speed) + stall, block, {ring.last, whole.last}}};
}

Duration ring_time(const PricedProgram& priced, const Segment& segment, double speed, const TransferTime& transfer) {
  const Duration all = loop_time(priced, segment.block, segment.range, speed, transfer).total;
  return Duration::picoseconds(all.picoseconds() / priced.program.blocks[segment.block].iterations);
}

Bandwidth ring_demand(const PricedProgram& priced, const Segment& segment, double speed) {
  const std::vector<Instruction>& body = priced.program.blocks[segment.block].body;
  Bytes largest;
  Duration step;
  for (std::size_t i = segment.range.first; i < segment.range.last; ++i) {
    if (body[i].opcode == Opcode::exchange) largest = std::max(largest, priced.program.bytes[body[i].work]);
    if (body[i].opcode == Opcode::attention) step = priced.time(segment.block, i, speed);
  }
  constexpr double unlimited = 9e18;
  const double demand = step.picoseconds() == 0 ? unlimited : static_cast<double>(largest.count()) / step.seconds();
  return Bandwidth::bytes_per_second(1).scaled(std::min(unlimited, std::max(1.0, demand)));
}

}  // namespace hdpsim
