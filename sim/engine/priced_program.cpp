#include "sim/engine/priced_program.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "sim/base/check.h"
#include "sim/engine/collective_traffic.h"
#include "sim/engine/impl/loop_schedule.h"
#include "sim/engine/impl/overlap.h"
#include "sim/engine/step_ending.h"
#include "sim/model/shares.h"
#include "sim/model/sharing_form.h"

namespace hdpsim {
namespace {

class Pricer {
 public:
  Pricer(PricedProgram& priced, const std::vector<HdpRank>& group, std::int64_t stage, const Machine& machine)
      : priced_(priced), group_(group), stage_(stage), machine_(machine) {}

  void run() {
    for (const Block& block : priced_.program.blocks) {
      iterations_ = block.iterations;
      std::vector<Duration>& times = priced_.times.emplace_back();
      times.reserve(block.body.size());
      for (const Instruction& instruction : block.body) times.push_back(time(instruction));
      divide_with_mean_rank(block, times);
      overlap_collectives(block, times);
      slow_under_pool(block, times);
      wait_for_host(block, times);
    }
    if (machine_.traffic != nullptr) add_traffic(*machine_.traffic);
  }

 private:
  // How often each of `works` of an opcode runs.
  [[nodiscard]] std::vector<std::int64_t> runs_of(Opcode opcode, std::size_t works) const {
    std::vector<std::int64_t> runs(works);
    for (const Block& block : priced_.program.blocks) {
      for (const Instruction& instruction : block.body) {
        if (instruction.opcode == opcode) runs[instruction.work] += instruction.runs(block.iterations);
      }
    }
    return runs;
  }

  void add_traffic(const CollectiveTraffic& links) const {
    const MicroBatchProgram& program = priced_.program;
    std::vector<SetTraffic>& sets = priced_.traffic.sets;
    const std::vector<std::int64_t> runs = runs_of(Opcode::collective, program.collectives.size());
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const TensorParallelCollective& op = program.collectives[i];
      const auto times = static_cast<double>(runs[i]);
      if (op.once_per_node) {
        links.add_exchange(sets, program.mixtures[*op.once_per_node], op.bytes, times);
      } else {
        const bool is_of_experts = op.among == CollectiveGroup::experts;
        links.add(sets, is_of_experts ? TrafficSets::experts : TrafficSets::tensor_parallel, op.kind, op.bytes, times);
      }
    }
    if (!program.shares.empty()) priced_.traffic.share_runs = runs_of(Opcode::share, program.shares.size());
    for (const Block& block : program.blocks) {
      for (const Instruction& instruction : block.body) {
        if (instruction.stream != Stream::pool) continue;
        const auto times = static_cast<double>(instruction.runs(block.iterations));
        const Bytes bytes = program.bytes[instruction.work];
        if (instruction.opcode == Opcode::gather) links.add_gather(sets, bytes, times, program.gather_bucket);
        if (instruction.opcode != Opcode::reduce) continue;
        links.add_reduction(sets, bytes, program.all_reduce, times, program.reduce_bucket);
      }
    }
  }

  Duration time(const Instruction& instruction) {
    // A ring repeats the same launches in every step, so that the last answer of each opcode is worth keeping.
    Answer& answer = answers_[static_cast<std::size_t>(instruction.opcode)];
    if (!answer.known || answer.work != instruction.work) answer = {true, instruction.work, estimate(instruction)};
    const Estimate& last = answer.estimate;
    if (depends_on_device_speed(instruction.opcode)) {
      priced_.evidence[static_cast<std::size_t>(last.evidence)] += last.time * instruction.runs(iterations_);
    }
    return last.time;
  }

  Estimate estimate(const Instruction& instruction) const {
    const MicroBatchProgram& program = priced_.program;
    switch (instruction.opcode) {
      case Opcode::dense:
        return machine_.cost->linear(program.dense[instruction.work]);
      case Opcode::attention:
        return machine_.cost->attention(program.attention[instruction.work]);
      case Opcode::merge:
        return machine_.cost->memory_bound(program.memory_bound[instruction.work]);
      case Opcode::exchange:
        return {};
      case Opcode::collective:
        return collective(program.collectives[instruction.work]);
      case Opcode::offload:
        return {program.bytes[instruction.work] / machine_.d2h, Evidence::formula};
      case Opcode::prefetch:
        return {program.bytes[instruction.work] / machine_.h2d, Evidence::formula};
      case Opcode::overhead:
        return {machine_.micro_batch_overhead, Evidence::formula};
      case Opcode::expert_wait:
        return {expert_wait(program.expert_waits[instruction.work]), Evidence::formula};
      case Opcode::rank_wait:  // divide_with_mean_rank() sets it from the instruction before
      case Opcode::issue:      // wait_for_host() sets it from the other instructions
        return {};
      case Opcode::gather:
        return part_of(program.gather_bucket, program.bytes[instruction.work],
                       [&](Bytes bytes) { return gather_of(bytes, machine_); });
      case Opcode::reduce:
        return part_of(program.reduce_bucket, program.bytes[instruction.work],
                       [&](Bytes bytes) { return reduction_of(bytes, program.all_reduce, machine_); });
      case Opcode::share:
        return share(program.shares[instruction.work]);
    }
    return {};
  }

  // The price of `bytes` in a collective of at least `bucket` bytes.
  template <class Price>
  static Estimate part_of(Bytes bucket, Bytes bytes, const Price& price) {
    if (bytes >= bucket) return price(bytes);
    Estimate whole = price(bucket);
    whole.time = whole.time.scaled(static_cast<double>(bytes.count()) / static_cast<double>(bucket.count()));
    return whole;
  }

  [[nodiscard]] Estimate collective(const TensorParallelCollective& op) const {
    if (op.once_per_node) return machine_.experts_per_node(priced_.program.mixtures[*op.once_per_node], op.bytes);
    return (op.among == CollectiveGroup::experts ? machine_.experts : machine_.tensor_parallel)(op.kind, op.bytes);
  }

  [[nodiscard]] Estimate share(const SharingCollective& op) const {
    return machine_.sharing({group_, stage_, op.party(priced_.program.sharing)}, op.kind, op.bytes);
  }

  // With odd shapes an even share may be the slower one.
  [[nodiscard]] Duration expert_wait(const ExpertWait& wait) const {
    return std::max(Duration{}, machine_.cost->linear(wait.slowest).time - machine_.cost->linear(wait.even).time);
  }

  // The time of the busiest rank: what the mean rank computes of it, and its wait for the rest.
  void divide_with_mean_rank(const Block& block, std::vector<Duration>& times) const {
    for (std::size_t i = 1; i < block.body.size(); ++i) {
      if (block.body[i].opcode != Opcode::rank_wait) continue;
      times[i] = times[i - 1].scaled(priced_.program.idle_shares[block.body[i].work]);
      times[i - 1] -= times[i];
    }
  }

  // A collective C and its product G take max(C, G) + min(C, G) / tp if both are cut into tp chunks and each chunk of
  // one overlaps with the preceding chunk of the other (Wang et al., ASPLOS 2023), and max(C, G) if both are whole. G
  // takes longer in chunks and while it overlaps with C, but is booked with its time alone and whole; the collective
  // gets the rest.
  void overlap_collectives(const Block& block, std::vector<Duration>& times) const {
    for (std::size_t i = 0; i < block.body.size(); ++i) {
      if (block.body[i].opcode != Opcode::collective) continue;
      const std::optional<OverlappedProduct>& product = priced_.program.collectives[block.body[i].work].overlapped;
      if (!product) continue;
      const Gemm& whole = priced_.program.dense[product->dense].gemms[product->gemm];
      const Duration booked = machine_.cost->gemm(whole).time;
      const Duration alone = product->in_chunks ? std::max(booked, in_chunks(whole)) : booked;
      const double chunk = product->in_chunks ? 1 / static_cast<double>(machine_.tp) : 0;
      const Duration slowed = alone + lost_to_overlap(alone, times[i], slowdown_.product);
      times[i] = std::max(times[i], slowed) + std::min(times[i], slowed).scaled(chunk) - booked;
    }
  }

  // A chunk has the tokens of one device (Transformer Engine, userbuffers: the ring exchange of an all-gather
  // multiplies the rows that have arrived). Its last wave of tiles may be as empty as that of the whole product.
  [[nodiscard]] Duration in_chunks(const Gemm& whole) const {
    Gemm chunk = whole;
    chunk.m = divided(whole.m, machine_.tp);
    return machine_.cost->gemm(chunk).time * machine_.tp;
  }

  // The data-parallel all-gathers and reductions of a loop overlap with its kernels, in each iteration from the first
  // kernel on; a reduction overlaps with the kernels of the next iteration.
  void slow_under_pool(const Block& block, std::vector<Duration>& times) {
    Duration left;
    for (std::size_t i = 0; i < block.body.size(); ++i) {
      if (block.body[i].stream != Stream::pool) continue;
      const bool ends_behind = block.body[i].opcode == Opcode::reduce && block.body[i].last_skipped == 0;
      const std::int64_t last = ends_behind ? 1 : 0;
      left += (times[i] * (block.body[i].runs(iterations_) - last)).scaled(1 / static_cast<double>(iterations_));
    }
    for (std::size_t i = 0; i < block.body.size() && left > Duration{}; ++i) {
      if (block.body[i].stream != Stream::compute) continue;
      const Duration lost = lost_to_overlap(times[i], left, factor_of(block.body[i].opcode, slowdown_));
      times[i] += lost;
      left -= std::min(left, times[i]);
      priced_.evidence[static_cast<std::size_t>(slowdown_.evidence)] += lost * iterations_;
    }
  }

  // The host runs ahead of the device and issues one kernel after another: an iteration takes as long as the slower of
  // the two. The host's lead when a loop begins, and while the device waits for messages, is neglected.
  void wait_for_host(const Block& block, std::vector<Duration>& times) const {
    Duration device;
    std::int64_t kernels = 0;
    for (std::size_t i = 0; i < block.body.size(); ++i) {
      const Instruction& instruction = block.body[i];
      if (instruction.opcode == Opcode::issue) {
        times[i] = std::max(Duration{}, kernels * machine_.issue - device);
      } else if (instruction.stream == Stream::compute) {
        device += times[i];
        kernels += kernels_of(instruction);
      }
    }
  }

  [[nodiscard]] std::int64_t kernels_of(const Instruction& instruction) const {
    const MicroBatchProgram& program = priced_.program;
    if (instruction.opcode == Opcode::attention) return machine_.cost->kernels(program.attention[instruction.work]);
    if (instruction.opcode == Opcode::expert_wait || instruction.opcode == Opcode::rank_wait) return 0;
    if (instruction.opcode != Opcode::dense) return 1;
    return program.dense[instruction.work].launches();
  }

  PricedProgram& priced_;
  const std::vector<HdpRank>& group_;
  std::int64_t stage_;
  const Machine& machine_;
  const KernelSlowdown slowdown_ = machine_.overlap_slowdown.value_or(KernelSlowdown{});
  std::int64_t iterations_ = 1;
  struct Answer {
    bool known = false;
    std::uint32_t work = 0;
    Estimate estimate;
  };
  std::array<Answer, opcode_count> answers_;
};

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
  PricedProgram priced;
  priced.program = program.pass(id);
  priced.times.reserve(priced.program.blocks.size());
  const Pipeline& pipeline = program.pipeline();
  const StagePass pass = pipeline.pass(id);
  Pricer(priced, pipeline.micro_batch(id).group, pass.stage, machine).run();
  if (machine.overlap_slowdown && pass.kind != PassKind::weight_gradient) {
    slow_under_exchanges(priced, hops, *machine.overlap_slowdown);
  }
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
