#include "sim/engine/impl/pricer.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "sim/engine/collective_traffic.h"
#include "sim/engine/impl/overlap.h"
#include "sim/engine/step_ending.h"
#include "sim/model/shares.h"

namespace hdpsim {
namespace {

// The workers of a pass.
struct PassPlace {
  const std::vector<HdpRank>& group;
  std::int64_t stage = 0;
};

// What a machine has for each group of collectives within a layer.
struct GroupMembers {
  TrafficSets sets;
  Collective Machine::*price;
};

GroupMembers members_of(CollectiveGroup group) {
  switch (group) {
    case CollectiveGroup::experts:
      return {TrafficSets::experts, &Machine::experts};
    case CollectiveGroup::expert_cuts:
      return {TrafficSets::expert_cuts, &Machine::expert_cuts};
    case CollectiveGroup::tensor_parallel:
      break;
  }
  return {TrafficSets::tensor_parallel, &Machine::tensor_parallel};
}

class Pricer {
 public:
  Pricer(PricedProgram& priced, const Machine& machine, const CostModel& cost)
      : priced_(priced), machine_(machine), cost_(cost) {}

  void price_class() {
    for (const Block& block : priced_.program.blocks) {
      iterations_ = block.iterations;
      std::vector<Duration>& times = priced_.times.emplace_back();
      times.reserve(block.body.size());
      for (const Instruction& instruction : block.body) {
        times.push_back(is_of_pass(instruction.opcode) ? Duration{} : time(instruction));
      }
      overlap_collectives(block, times);
    }
    if (machine_.traffic != nullptr) add_traffic(*machine_.traffic);
  }

  void price_pass(const PassPlace& place) {
    place_ = &place;
    for (std::size_t b = 0; b < priced_.program.blocks.size(); ++b) {
      const Block& block = priced_.program.blocks[b];
      std::vector<Duration>& times = priced_.times[b];
      iterations_ = block.iterations;
      for (std::size_t i = 0; i < block.body.size(); ++i) {
        if (is_of_pass(block.body[i].opcode)) times[i] = time(block.body[i]);
      }
      divide_with_mean_rank(block, times);
      slow_under_pool(block, times);
    }
    wait_for_host(priced_, machine_);
  }

 private:
  // What differs between passes of a class: the spans' attention, copies of a share of the activations, and collectives
  // in the pass's own group.
  static bool is_of_pass(Opcode opcode) {
    return opcode == Opcode::attention || opcode == Opcode::share || copies_activations(opcode);
  }

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
        links.add(sets, members_of(op.among).sets, op.kind, op.bytes, times);
      }
    }
    if (!program.shares.empty()) priced_.traffic.share_runs = runs_of(Opcode::share, program.shares.size());
    for (const Block& block : program.blocks) {
      for (const Instruction& instruction : block.body) {
        if (instruction.stream != Stream::pool) continue;
        const auto times = static_cast<double>(instruction.runs(block.iterations));
        const PoolBytes& bytes = program.pools[instruction.work];
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
        return cost_.linear(program.dense[instruction.work]);
      case Opcode::attention:
        return cost_.attention(program.attention[instruction.work]);
      case Opcode::merge:
        return cost_.memory_bound(program.memory_bound[instruction.work]);
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
        return with_copy(part_of(program.gather_bucket, program.pools[instruction.work],
                                 [&](const PoolBytes& bytes) { return gather_of(bytes, machine_); }),
                         program.pools[instruction.work].all(), program.host_copies.gathered, machine_.h2d);
      case Opcode::reduce:
        return with_copy(
            part_of(program.reduce_bucket, program.pools[instruction.work],
                    [&](const PoolBytes& bytes) { return reduction_of(bytes, program.all_reduce, machine_); }),
            program.pools[instruction.work].all(), program.host_copies.reduced, machine_.d2h);
      case Opcode::share:
        return share(program.shares[instruction.work]);
    }
    return {};
  }

  // A collective, and the copy of a share of its bytes to or from host memory.
  static Estimate with_copy(Estimate collective, Bytes bytes, double share, Bandwidth link) {
    if (share > 0) collective.time += bytes.scaled(share) / link;
    return collective;
  }

  template <class Price>
  static Estimate part_of(const PoolBytes& bucket, const PoolBytes& bytes, const Price& price) {
    Estimate sum = part_of(bucket.common, bytes.common, [&](Bytes common) { return price({common, {}}); });
    if (bytes.experts == Bytes{}) return sum;
    const Estimate more = part_of(bucket.experts, bytes.experts, [&](Bytes experts) { return price({{}, experts}); });
    return {sum.time + more.time, std::max(sum.evidence, more.evidence)};
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
    return (machine_.*members_of(op.among).price)(op.kind, op.bytes);
  }

  [[nodiscard]] Estimate share(const SharingCollective& op) const {
    return machine_.sharing({place_->group, place_->stage, op.party(priced_.program.sharing)}, op.kind, op.bytes);
  }

  // With odd shapes an even share may be the slower one.
  [[nodiscard]] Duration expert_wait(const ExpertWait& wait) const {
    return std::max(Duration{}, cost_.linear(wait.slowest).time - cost_.linear(wait.even).time);
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
  // one overlaps with the preceding chunk of the other (Wang et al., ASPLOS 2023), and max(C, G) if both are whole. The
  // chunks of G together take as long as G: they are on several streams, so that the tiles of the next one fill the
  // last wave of each (Transformer Engine, comm_gemm_overlap.cpp: chunk i on stream i modulo 3). G takes longer while
  // it overlaps with C, but is booked with its time alone; the collective gets the rest.
  void overlap_collectives(const Block& block, std::vector<Duration>& times) const {
    for (std::size_t i = 0; i < block.body.size(); ++i) {
      if (block.body[i].opcode != Opcode::collective) continue;
      const std::optional<OverlappedProduct>& product = priced_.program.collectives[block.body[i].work].overlapped;
      if (!product) continue;
      const Duration alone = cost_.gemm(priced_.program.dense[product->dense].gemms[product->gemm]).time;
      const double chunk = product->in_chunks ? 1 / static_cast<double>(machine_.tp) : 0;
      const Duration slowed = alone + lost_to_overlap(alone, times[i], slowdown_.product);
      times[i] = std::max(times[i], slowed) + std::min(times[i], slowed).scaled(chunk) - alone;
    }
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

  PricedProgram& priced_;
  const Machine& machine_;
  const CostModel& cost_;
  const PassPlace* place_ = nullptr;
  const KernelSlowdown slowdown_ = machine_.overlap_slowdown.value_or(KernelSlowdown{});
  std::int64_t iterations_ = 1;
  struct Answer {
    bool known = false;
    std::uint32_t work = 0;
    Estimate estimate;
  };
  std::array<Answer, opcode_count> answers_;
};

}  // namespace

HostCalls host_calls_of(const Instruction& instruction, const MicroBatchProgram& program, const CostModel& cost) {
  switch (instruction.opcode) {
    case Opcode::attention:
      return {cost.kernels(program.attention[instruction.work])};
    case Opcode::dense:
      return program.dense[instruction.work].host_calls();
    case Opcode::collective:
      return {.dispatches = program.collectives[instruction.work].among == CollectiveGroup::experts ? 1 : 0};
    case Opcode::expert_wait:
    case Opcode::rank_wait:
    case Opcode::gather:  // hooks issue these two, a bucket of many layers at once
    case Opcode::reduce:
    case Opcode::offload:
    case Opcode::prefetch:
      return {};
    case Opcode::exchange:
      return {2};  // a send and a receive
    default:
      return {1};
  }
}

namespace {

/// An instruction of so many kernels: what the host takes to issue them, and what the device takes.
struct IssuedWork {
  Duration host;
  Duration device;
  std::int64_t kernels = 1;
  bool host_waits = false;  ///< For the device, between the host's time and the device's.
};

// The time from one wait of the host to the next, which begins with the device's part of the first and ends with the
// host's part of the last. The device begins a kernel when the host has issued it and the kernels before it are done:
// max over k of (host until k) + (device from k on). Kernels of an instruction are taken as equal, so that the first
// or the last of them decides.
Duration time_between_waits(const std::vector<IssuedWork>& work, std::size_t first, std::size_t last) {
  Duration host;
  Duration device = work[first].device;
  for (std::size_t i = first + 1; i < last; ++i) device += work[i].device;
  Duration longest = device;
  for (std::size_t i = first + 1; i < last; ++i) {
    const double one = 1 / static_cast<double>(work[i].kernels);
    device -= work[i - 1].device;
    longest = std::max(longest, host + work[i].host.scaled(one) + device);
    host += work[i].host;
    longest = std::max(longest, host + device - work[i].device.scaled(1 - one));
  }
  return std::max(longest, host + work[last].host);
}

// The wait of a device for its host in an iteration of a loop. The host runs ahead of the device but for the points
// where it waits; layers before and behind are taken as this one.
Duration wait_in_layer(std::vector<IssuedWork> work) {
  Duration host;
  Duration device;
  for (const IssuedWork& one : work) {
    host += one.host;
    device += one.device;
  }
  const auto waits = [](const IssuedWork& one) { return one.host_waits; };
  const auto first = std::find_if(work.begin(), work.end(), waits);
  if (first == work.end()) return std::max(Duration{}, host - device);
  std::rotate(work.begin(), first, work.end());
  work.push_back(work.front());
  Duration time;
  for (std::size_t begin = 0; begin + 1 < work.size();) {
    std::size_t end = begin + 1;
    while (!work[end].host_waits) ++end;
    time += time_between_waits(work, begin, end);
    begin = end;
  }
  return time - device;
}

}  // namespace

void wait_for_host(PricedProgram& priced, const Machine& machine) {
  for (std::size_t b = 0; b < priced.program.blocks.size(); ++b) {
    const Block& block = priced.program.blocks[b];
    const auto issues = [](const Instruction& instruction) { return instruction.opcode == Opcode::issue; };
    if (std::none_of(block.body.begin(), block.body.end(), issues)) continue;
    std::vector<Duration>& times = priced.times[b];
    std::vector<IssuedWork> work;
    for (std::size_t i = 0; i < block.body.size(); ++i) {
      const Instruction& instruction = block.body[i];
      if (instruction.opcode == Opcode::issue) {
        times[i] = wait_in_layer(work);
        continue;
      }
      const HostCalls calls = host_calls_of(instruction, priced.program, *machine.cost);
      work.push_back({.host = machine.host.of(calls),
                      .device = instruction.stream == Stream::compute ? times[i] : Duration{},
                      .kernels = std::max<std::int64_t>(1, calls.kernels + calls.in_loops),
                      .host_waits = host_waits_before(instruction, priced.program)});
    }
  }
}

void price_class(PricedProgram& priced, const Machine& machine, const CostModel& cost) {
  Pricer(priced, machine, cost).price_class();
}

void price_pass(PricedProgram& priced, const Pipeline& pipeline, PassId id, const std::vector<Hop>& hops,
                const Machine& machine) {
  const StagePass pass = pipeline.pass(id);
  const PassPlace place{pipeline.micro_batch(id).group, pass.stage};
  Pricer(priced, machine, *machine.cost).price_pass(place);
  if (!machine.overlap_slowdown || pass.kind == PassKind::weight_gradient) return;
  slow_under_exchanges(priced, hops, *machine.overlap_slowdown);
}

}  // namespace hdpsim
