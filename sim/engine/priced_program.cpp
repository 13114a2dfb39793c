#include "sim/engine/priced_program.h"

#include <algorithm>
#include <array>

#include "sim/base/check.h"
#include "sim/engine/impl/beside_exchanges.h"

namespace hdpsim {
namespace {

class Pricer {
 public:
  Pricer(PricedProgram& priced, const Machine& machine) : priced_(priced), machine_(machine) {}

  void run() {
    for (const Block& block : priced_.program.blocks) {
      iterations_ = block.iterations;
      std::vector<Duration>& times = priced_.times.emplace_back();
      times.reserve(block.body.size());
      for (const Instruction& instruction : block.body) times.push_back(time(instruction));
    }
  }

 private:
  Duration time(const Instruction& instruction) {
    // A ring repeats the same launches step after step: each opcode's last answer is asked again and again.
    Answer& answer = answers_[static_cast<std::size_t>(instruction.opcode)];
    if (!answer.known || answer.work != instruction.work) answer = {true, instruction.work, estimate(instruction)};
    const Estimate& last = answer.estimate;
    if (depends_on_device_speed(instruction.opcode)) {
      priced_.evidence[static_cast<std::size_t>(last.evidence)] += last.time * iterations_;
    }
    return last.time;
  }

  Estimate estimate(const Instruction& instruction) const {
    const MicroBatchProgram& program = priced_.program;
    switch (instruction.opcode) {
      case Opcode::dense:
        return dense(program.dense[instruction.work]);
      case Opcode::attention:
        return machine_.cost->attention(program.attention[instruction.work]);
      case Opcode::merge:
        return machine_.cost->memory_bound(program.memory_bound[instruction.work]);
      case Opcode::exchange:
        return {};
      case Opcode::collective:
        return {machine_.tp_collective(program.collectives[instruction.work].bytes), Evidence::formula};
      case Opcode::offload:
        return {program.bytes[instruction.work] / machine_.d2h, Evidence::formula};
      case Opcode::prefetch:
        return {program.bytes[instruction.work] / machine_.h2d, Evidence::formula};
      case Opcode::overhead:
        return {machine_.micro_batch_overhead, Evidence::formula};
    }
    return {};
  }

  // The weakest evidence of its parts: a sum is known no better than that.
  Estimate dense(const LinearPart& part) const {
    Estimate sum{Duration{}, Evidence::measured};
    const auto add = [&](const Estimate& estimate) {
      sum.time += estimate.time;
      sum.evidence = std::max(sum.evidence, estimate.evidence);
    };
    for (const Gemm& gemm : part.gemms) add(machine_.cost->gemm(gemm));
    if (part.memory_bound.kernels > 0) add(machine_.cost->memory_bound(part.memory_bound));
    return sum;
  }

  PricedProgram& priced_;
  const Machine& machine_;
  std::int64_t iterations_ = 1;
  struct Answer {
    bool known = false;
    std::uint32_t work = 0;
    Estimate estimate;
  };
  std::array<Answer, opcode_count> answers_;
};

Hop hop_between(HdpRank from, HdpRank to, const Machine& machine) {
  Hop hop;
  for (std::int64_t shard = 0; shard < machine.tp; ++shard) {
    const Route route =
        machine.network->route(machine.placement->device(from, 0, shard), machine.placement->device(to, 0, shard));
    const bool first = hop.routes.empty();
    hop.latency = first ? route.latency : std::max(hop.latency, route.latency);
    hop.alone = first ? route.alone : std::min(hop.alone, route.alone);
    hop.is_private = hop.is_private && machine.network->is_private(route);
    hop.routes.push_back(route);
  }
  return hop;
}

Duration on_slowest(Duration nominal, const Machine& machine) {
  return nominal.scaled(1 / *std::min_element(machine.speed.begin(), machine.speed.end()));
}

}  // namespace

bool depends_on_device_speed(Opcode opcode) {
  return opcode == Opcode::dense || opcode == Opcode::attention || opcode == Opcode::merge;
}

void PricedProgram::delay_start(Duration delay) {
  HDPSIM_CHECK(program.blocks.front().body.front().opcode == Opcode::overhead, "a micro-batch begins with opcode {}",
               static_cast<int>(program.blocks.front().body.front().opcode));
  times.front().front() += delay;
}

PricedProgram price(const Program& program, MicroBatchId id, const Machine& machine) {
  PricedProgram priced;
  priced.program = program.micro_batch(id);
  priced.times.reserve(priced.program.blocks.size());
  Pricer(priced, machine).run();
  if (machine.beside_communication) {
    const std::vector<Hop> hops = ring_hops(program.plan().micro_batches[id.index()], machine);
    slow_beside_exchanges(priced, hops, *machine.beside_communication);
  }
  return priced;
}

std::vector<Hop> ring_hops(const MicroBatch& micro_batch, const Machine& machine) {
  std::vector<Hop> hops;
  const std::size_t ranks = micro_batch.group.size();
  if (ranks == 1) return hops;
  hops.reserve(ranks);
  for (std::size_t i = 0; i < ranks; ++i) {
    hops.push_back(hop_between(micro_batch.group[i], micro_batch.group[(i + 1) % ranks], machine));
  }
  return hops;
}

Duration pool_sync(const StepEnd& end, const Machine& machine) {
  return machine.pool_reduce_scatter(end.gradient) + machine.pool_all_gather(end.parameters);
}

Duration slowest_optimizer(const StepEnd& end, const Machine& machine) {
  return on_slowest(machine.cost->memory_bound(end.optimizer).time, machine);
}

void finish_step(const StepEnd& end, const Machine& machine, const StepTimes& times, Timeline& timeline) {
  const Instant last = *std::max_element(times.finished.begin(), times.finished.end());
  const Estimate optimizer = machine.cost->memory_bound(end.optimizer);
  const Duration slowest = on_slowest(optimizer.time, machine);
  timeline.step_time = (last - times.begin) + times.sync + slowest + machine.step_overhead;
  for (std::size_t r = 0; r < timeline.ranks.size(); ++r) {
    Breakdown& rank = timeline.ranks[r];
    const Duration own_optimizer = optimizer.time.scaled(1 / machine.speed[r]);
    rank[Activity::grad_sync] += times.sync;
    rank[Activity::optimizer] += own_optimizer;
    rank[Activity::overhead] += machine.step_overhead;
    rank[Activity::group_wait] += (last - times.finished[r]) + (slowest - own_optimizer);
    timeline.evidence[static_cast<std::size_t>(optimizer.evidence)] += own_optimizer;
    HDPSIM_CHECK(rank.total() == timeline.step_time, "rank {} accounts for {} ps of a step of {} ps", r,
                 rank.total().picoseconds(), timeline.step_time.picoseconds());
  }
}

}  // namespace hdpsim
