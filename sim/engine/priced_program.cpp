#include "sim/engine/priced_program.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "sim/base/check.h"
#include "sim/engine/collective_traffic.h"
#include "sim/engine/impl/loop_schedule.h"
#include "sim/engine/impl/overlap.h"
#include "sim/engine/impl/pricer.h"
#include "sim/engine/step_ending.h"
#include "sim/model/shares.h"
#include "sim/model/sharing_form.h"

namespace hdpsim {
namespace {

struct Place {
  HdpRank rank;
  std::int64_t stage;
};

// Adds the routes of one shard's message.
void add_routes(std::vector<HopRoute>& routes, DeviceId from, DeviceId to, const NetworkModel& network, NicUse nics) {
  if (nics == NicUse::own) {
    routes.push_back({network.route(from, to)});
    return;
  }
  const std::vector<Route> parts = network.routes_by_all_nics(from, to);
  for (const Route& part : parts) routes.push_back({part, 1 / static_cast<double>(parts.size())});
}

// The rate of a hop's messages, parts of which share links. O(n log n) for the links of all parts.
Bandwidth rate_of_parts(const std::vector<HopRoute>& parts, const NetworkModel& network) {
  std::vector<std::pair<LinkId, double>> shares;
  for (const HopRoute& part : parts) {
    for (const auto& [link, share] : part.route.binding_links()) shares.emplace_back(link, part.share * share);
  }
  std::sort(shares.begin(), shares.end());
  std::optional<Bandwidth> slowest;
  for (std::size_t i = 0; i < shares.size();) {
    const LinkId link = shares[i].first;
    double share = 0;
    for (; i < shares.size() && shares[i].first == link; ++i) share += shares[i].second;
    const Bandwidth rate = network.link_rate(link).scaled(1 / share);
    slowest = slowest ? std::min(*slowest, rate) : rate;
  }
  return slowest.value();
}

Bandwidth slowest_route(const std::vector<HopRoute>& routes) {
  return std::min_element(routes.begin(), routes.end(),
                          [](const HopRoute& a, const HopRoute& b) { return a.route.alone < b.route.alone; })
      ->route.alone;
}

// Where rings use all NICs, no link of a device is its own.
Hop hop_between(const Place& from, const Place& to, const Machine& machine, NicUse nics) {
  const auto device = [&](const Place& place, std::int64_t shard) {
    return machine.placement->device(place.rank, place.stage, shard);
  };
  Hop hop;
  for (std::int64_t shard = 0; shard < machine.tp; ++shard) {
    add_routes(hop.routes, device(from, shard), device(to, shard), *machine.network, nics);
  }
  hop.alone = nics == NicUse::own ? slowest_route(hop.routes) : rate_of_parts(hop.routes, *machine.network);
  hop.is_private = machine.ring_nics == NicUse::own;
  for (const HopRoute& part : hop.routes) {
    hop.latency = std::max(hop.latency, part.route.latency);
    hop.is_private = hop.is_private && machine.network->is_private(part.route);
  }
  return hop;
}

}  // namespace

bool depends_on_device_speed(Opcode opcode) {
  return opcode == Opcode::dense || opcode == Opcode::attention || opcode == Opcode::merge ||
         opcode == Opcode::rank_wait;
}

void PricedProgram::delay_start(Duration delay) {
  if (delay == Duration{}) return;
  HDPSIM_CHECK(program.blocks.front().body.front().opcode == Opcode::overhead, "a micro-batch begins with opcode {}",
               static_cast<int>(program.blocks.front().body.front().opcode));
  times.front().front() += delay;
}

namespace {

// The program of a pass as if no other ran at the same time.
PricedProgram priced_alone(const Program& program, PassId id, const std::vector<Hop>& hops, const Machine& machine) {
  PricedProgram priced{program.pass(id), {}};
  priced.times.reserve(priced.program.blocks.size());
  price_class(priced, machine, *machine.cost);
  price_pass(priced, program.pipeline(), id, hops, machine);
  return priced;
}

}  // namespace

PricedProgram price(const Program& program, PassId id, const Machine& machine) {
  return price(program, id, ring_hops(program, id, machine), machine);
}

PricedProgram price(const Program& program, PassId id, const std::vector<Hop>& hops, const Machine& machine) {
  PricedProgram priced = priced_alone(program, id, hops, machine);
  const Pipeline& pipeline = program.pipeline();
  const std::optional<PassId> partner = pipeline.overlap_partner(id);
  if (!partner || !program.options().model.moe) return priced;
  const std::vector<Hop> partner_hops = ring_hops(program, *partner, machine);
  std::vector<PricedProgram> others{priced_alone(program, *partner, partner_hops, machine)};
  const StagePass other = pipeline.pass(*partner);
  if (other.kind == PassKind::input_gradient) {
    const PassId weights = pipeline.id_of(other.micro_batch, other.chunk, PassKind::weight_gradient);
    others.push_back(priced_alone(program, weights, partner_hops, machine));
  }
  overlap_passes(priced, others, machine.overlap_slowdown.value_or(KernelSlowdown{}));
  wait_for_host(priced, machine);
  return priced;
}

std::vector<Hop> ring_hops(const Program& program, PassId id, const Machine& machine) {
  const MicroBatch& micro_batch = program.pipeline().micro_batch(id);
  return ring_hops(program.sharing(micro_batch), micro_batch.group, program.pipeline().pass(id).stage, machine);
}

std::vector<Hop> ring_hops(const GroupSharing& sharing, const std::vector<HdpRank>& group, std::int64_t stage,
                           const Machine& machine) {
  std::vector<Hop> hops;
  const auto count = static_cast<std::size_t>(form_of(sharing).hops(sharing));
  hops.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    hops.push_back(hop_between({group[i], stage}, {group[sharing.next(i)], stage}, machine, machine.ring_nics));
  }
  return hops;
}

Hop stage_hop(HdpRank rank, std::int64_t from, std::int64_t to, const Machine& machine) {
  return hop_between({rank, from}, {rank, to}, machine, NicUse::own);
}

Breakdown time_of_one_rank(const PricedProgram& priced, double speed) {
  return micro_batch_time(priced, speed, [](Bytes) { return Duration{}; }).breakdown;
}

void add_evidence(const PricedProgram& priced, std::span<const WorkerId> workers, const Machine& machine,
                  EvidenceSums& evidence) {
  std::int64_t nominal = 0;
  for (const WorkerId worker : workers) {
    const double speed = machine.speed[worker.index()];
    if (speed == 1) {
      ++nominal;
      continue;
    }
    for (std::size_t e = 0; e < evidence_kinds; ++e) evidence[e] += priced.evidence[e].scaled(1 / speed);
  }
  for (std::size_t e = 0; e < evidence_kinds; ++e) evidence[e].add(priced.evidence[e], nominal);
}

}  // namespace hdpsim
