#include "sim/engine/impl/group_run.h"

#include <algorithm>
#include <array>
#include <vector>

#include "sim/base/check.h"

namespace hdpsim {
namespace {

// Gradients of a last bucket of layers, which are reduced behind the last of them.
bool is_of_last_bucket(const Block& block, const Instruction& instruction) {
  return instruction.opcode == Opcode::reduce && instruction.first_iteration > 0 &&
         instruction.first_iteration + 1 == block.iterations;
}

// The time per layer of the busiest stream of host copies and data-parallel collectives.
Duration copy_of_layer(const PricedProgram& priced, std::size_t block) {
  std::array<Duration, stream_count> copies{};
  const Block& loop = priced.program.blocks[block];
  for (std::size_t i = 0; i < loop.body.size(); ++i) {
    const Stream stream = loop.body[i].stream;
    if (stream == Stream::compute || stream == Stream::comm || is_of_last_bucket(loop, loop.body[i])) continue;
    copies[static_cast<std::size_t>(stream)] += priced.time(block, i, 1);
  }
  return *std::max_element(copies.begin(), copies.end());
}

Duration tail_of_block(const PricedProgram& priced, std::size_t block) {
  Duration tail;
  const std::vector<Instruction>& body = priced.program.blocks[block].body;
  for (std::size_t i = 0; i < body.size(); ++i) {
    if (body[i].opcode == Opcode::reduce && body[i].last_skipped == 0) tail += priced.time(block, i, 1);
  }
  return tail;
}

bool is_slower(const Hop& a, const Hop& b) {
  return a.alone != b.alone ? a.alone < b.alone : a.latency > b.latency;
}

// For every rank of a group the number of hops of its ring between it and the nearest end of one of the slowest hops of
// all rings.
std::vector<std::size_t> distances_to_slowest(const std::vector<Hop>& hops, const GroupSharing& sharing) {
  const std::size_t ranks = hops.size();
  std::vector<std::size_t> distances(ranks, ranks);
  if (hops.empty()) return distances;
  const Hop& slowest = *std::min_element(hops.begin(), hops.end(), is_slower);
  for (std::size_t i = 0; i < ranks; ++i) {
    if (!is_slower(slowest, hops[i])) distances[i] = distances[sharing.next(i)] = 0;
  }
  // Twice round the ring in each direction reaches every rank from every hop.
  for (std::size_t i = 0; i < 2 * ranks; ++i) {
    std::size_t& next = distances[sharing.next(i % ranks)];
    next = std::min(next, distances[i % ranks] + 1);
  }
  for (std::size_t i = 2 * ranks; i > 0; --i) {
    std::size_t& before = distances[sharing.before(i % ranks)];
    before = std::min(before, distances[i % ranks] + 1);
  }
  return distances;
}

// The time that a device of nominal speed computes between the all-to-alls of a block.
Duration between_exchanges(const PricedProgram& priced, std::size_t block) {
  const Block& loop = priced.program.blocks[block];
  Duration sum;
  for (const BodyRange& experts : loop.exchanged_experts) {
    for (std::size_t i = experts.first; i < experts.last; ++i) {
      if (loop.body[i].opcode == Opcode::dense) sum += priced.time(block, i, 1);
    }
  }
  return sum * loop.iterations;
}

}  // namespace

void HopShares::limit(const HopKind& kind, Bandwidth rate) {
  for (auto& [known, limit] : limits_) {
    if (known != kind) continue;
    limit = std::min(limit, rate);
    return;
  }
  limits_.emplace_back(kind, rate);
}

Bandwidth HopShares::rate(const HopKind& kind) const {
  for (const auto& [known, limit] : limits_) {
    if (known == kind) return std::min(limit, kind.alone);
  }
  return kind.alone;
}

void RingPace::add(const Hop& hop, bool contention) {
  std::vector<HopKind>& kinds = contention && !hop.is_private ? contended_ : private_;
  const HopKind kind{hop.latency, hop.alone};
  if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
}

Duration RingPace::transfer(Bytes bytes) const {
  Duration slowest;
  for (const auto* kinds : {&private_, &contended_}) {
    for (const HopKind& kind : *kinds) slowest = std::max(slowest, kind.latency + bytes / kind.alone);
  }
  return slowest;
}

Duration RingPace::transfer(Bytes bytes, const HopShares& shares) const {
  Duration slowest;
  for (const HopKind& kind : private_) slowest = std::max(slowest, kind.latency + bytes / kind.alone);
  for (const HopKind& kind : contended_) slowest = std::max(slowest, kind.latency + bytes / shares.rate(kind));
  return slowest;
}

GroupPace group_pace(const std::vector<WorkerId>& group, const std::vector<Hop>& hops, const Machine& machine,
                     const RingRules& rules) {
  GroupPace pace;
  const auto class_of = [&](double speed) -> SpeedClass& {
    for (SpeedClass& known : pace.classes) {
      if (known.speed == speed) return known;
    }
    return pace.classes.emplace_back(SpeedClass{speed, {}, 0});
  };
  const std::vector<std::size_t> distances = distances_to_slowest(hops, rules.sharing);
  const std::size_t ranks = group.size();
  for (std::size_t i = 0; i < ranks; ++i) {
    SpeedClass& own = class_of(machine.speed[group[i].index()]);
    if (hops.empty()) continue;
    own.own.add(hops[i], rules.contention);
    own.own.add(hops[rules.sharing.before(i)], rules.contention);
    pace.all.add(hops[i], rules.contention);
    const double away = (rules.begins_together ? 1 : 2) * static_cast<double>(distances[i]) /
                        static_cast<double>(rules.sharing.parties - 1);
    own.slow_fraction = std::max(own.slow_fraction, 1 - away);
  }
  std::sort(pace.classes.begin(), pace.classes.end(),
            [](const SpeedClass& a, const SpeedClass& b) { return a.speed < b.speed; });
  return pace;
}

Duration between(Duration own, Duration slowest, double slow_fraction) {
  return own + (slowest - own).scaled(slow_fraction);
}

std::vector<Pass> pass_through(const PricedProgram& priced, std::size_t block) {
  const Block& loop = priced.program.blocks[block];
  const Duration copy = copy_of_layer(priced, block);
  const Duration tail = tail_of_block(priced, block);
  if (loop.rings.empty()) return {{{0, loop.body.size()}, {}, {}, copy, tail}};
  std::vector<Pass> segments;
  std::size_t begin = 0;
  for (const BodyRange& ring : loop.rings) {
    segments.push_back({{begin, ring.first}, ring, {ring.last, ring.last}, copy, tail});
    begin = ring.last;
  }
  segments.back().behind.last = loop.body.size();
  return segments;
}

Duration kernel_time(const PricedProgram& priced, std::size_t block, BodyRange part, double speed,
                     std::int64_t iteration) {
  const Block& loop = priced.program.blocks[block];
  Duration sum;
  for (std::size_t i = part.first; i < part.last; ++i) {
    const bool runs = loop.body[i].stream == Stream::compute && loop.body[i].active(iteration, loop.iterations);
    if (runs) sum += priced.time(block, i, speed);
  }
  return sum;
}

Duration ring_time(const PricedProgram& priced, std::size_t block, BodyRange ring, double speed,
                   const TransferTime& transfer) {
  return pass_time(priced, block, ring, speed, transfer).total;
}

RingDemand ring_demand(const PricedProgram& priced, std::size_t block, BodyRange ring, double speed) {
  const std::vector<Instruction>& body = priced.program.blocks[block].body;
  RingDemand demand;
  for (std::size_t i = ring.first; i < ring.last; ++i) {
    if (body[i].opcode == Opcode::exchange) {
      demand.message = std::max(demand.message, priced.program.bytes[body[i].work]);
    }
    if (body[i].opcode != Opcode::attention || body[i].ring_step == local_step) continue;
    const bool uneven = i + 1 < ring.last && body[i + 1].opcode == Opcode::rank_wait;
    const Duration step = priced.time(block, i, speed) + (uneven ? priced.time(block, i + 1, speed) : Duration{});
    demand.step = uneven && body[i].ring_step > 1 ? std::min(demand.step, step) : step;
  }
  return demand;
}

Bandwidth RingDemand::rate(Duration latency) const {
  constexpr double unlimited = 9e18;
  const double rate = step > latency ? static_cast<double>(message.count()) / (step - latency).seconds() : unlimited;
  return Bandwidth::bytes_per_second(1).scaled(std::clamp(rate, 1.0, unlimited));
}

std::optional<Margins> margins(const PricedProgram& priced, double speed, const TransferTime& transfer) {
  const std::vector<Block>& blocks = priced.program.blocks;
  const auto whole = [&](std::size_t block) {
    return loop_time(priced, block, {0, blocks[block].body.size()}, speed, transfer).total;
  };
  Margins margins;
  std::size_t first = 0;
  for (; first < blocks.size(); ++first) {
    if (const auto& exchanged = blocks[first].exchanged_experts; !exchanged.empty()) {
      margins.lead += pass_time(priced, first, {0, exchanged.front().first}, speed, transfer).total;
      break;
    }
    margins.lead += whole(first);
  }
  if (first == blocks.size()) return std::nullopt;
  for (std::size_t block = 0; block < blocks.size(); ++block) margins.experts += between_exchanges(priced, block);
  for (std::size_t block = blocks.size(); block-- > first;) {
    if (const auto& exchanged = blocks[block].exchanged_experts; !exchanged.empty()) {
      const BodyRange behind{exchanged.back().last + 1, blocks[block].body.size()};
      margins.tail += pass_time(priced, block, behind, speed, transfer).total;
      break;
    }
    margins.tail += whole(block);
  }
  return margins;
}

void add_route_bytes(const Route& route, Bytes bytes, LinkTraffic& links) {
  for (const auto& [link, share] : route.binding_links()) {
    links.add(link, share == 1 ? bytes : bytes.scaled(share));
  }
}

void add_ring_traffic(const MicroBatchProgram& program, const std::vector<Hop>& hops, double share,
                      LinkTraffic& links) {
  if (hops.empty()) return;
  const Bytes whole = program.sent_around_ring();
  const Bytes bytes = share == 1 ? whole : whole.scaled(share);
  for (const Hop& hop : hops) {
    for (const HopRoute& part : hop.routes) {
      add_route_bytes(part.route, part.part(bytes), links);
    }
  }
}

double share_sent(const MicroBatchProgram& program, std::size_t block, std::int64_t iterations) {
  const Bytes all = program.sent_around_ring();
  if (all == Bytes{}) return 1;
  double sent = 0;
  for (std::size_t b = 0; b <= block; ++b) {
    const Block& each = program.blocks[b];
    const double part = b < block ? 1 : static_cast<double>(iterations) / static_cast<double>(each.iterations);
    sent += part * static_cast<double>(program.sent_around_ring(each).count());
  }
  return sent / static_cast<double>(all.count());
}

}  // namespace hdpsim
