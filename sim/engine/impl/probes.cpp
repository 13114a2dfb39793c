#include "sim/engine/impl/probes.h"

#include <algorithm>
#include <utility>

#include "sim/engine/impl/group_run.h"
#include "sim/engine/priced_program.h"
#include "sim/plan/expert_waves.h"

namespace hdpsim {
namespace {

class PassReader {
 public:
  PassReader(const Program& program, PassId id, const std::vector<Hop>& hops, const Machine& machine)
      : priced_(price(program, id, hops, machine)), ring_(static_cast<std::size_t>(priced_.program.sharing.parties)) {
    for (const Hop& hop : hops) pace_.add(hop, false);
  }

  void add_to(const StagePass& pass, Probe& probe) const {
    const TransferTime transfer = [this](Bytes bytes) { return pace_.transfer(bytes); };
    const double total = micro_batch_time(priced_, 1, transfer).total.seconds();
    probe.total += total;
    if (pass.kind != PassKind::whole) {
      probe.chunks.resize(std::max(probe.chunks.size(), static_cast<std::size_t>(pass.chunk) + 1));
      PassSeconds& chunk = probe.chunks[static_cast<std::size_t>(pass.chunk)];
      (pass.kind == PassKind::forward ? chunk.forward : chunk.backward) += total;
    }
    for (std::size_t block = 0; block < priced_.program.blocks.size(); ++block) add_block(block, probe);
  }

 private:
  void add_block(std::size_t index, Probe& probe) const {
    const Block& block = priced_.program.blocks[index];
    const bool forward = block.direction == Direction::forward;
    // Before the gradients of a ring, its forward may be computed again.
    const std::size_t again = !forward && block.rings.size() > 1 ? block.rings.back().first : 0;
    for (std::size_t i = 0; i < block.body.size(); ++i) {
      const Instruction& instruction = block.body[i];
      RingTimes& ring = probe.directions[forward || i < again ? 0 : 1];
      const bool exchanges = instruction.opcode == Opcode::exchange;
      const Duration time =
          exchanges ? pace_.transfer(priced_.program.bytes[instruction.work]) : priced_.times[index][i];
      const auto active = static_cast<double>(instruction.runs(block.iterations));
      const auto iterations = static_cast<double>(block.iterations);
      if (exchanges) {
        exchange_of(ring, instruction.ring_step) += time.seconds() * active;
      } else if (instruction.opcode == Opcode::offload) {
        probe.copies += time.seconds() * iterations;
      } else if (instruction.opcode == Opcode::prefetch) {
        probe.fetches += time.seconds() * iterations;
      } else if (instruction.opcode == Opcode::share) {
        ring.shares += time.seconds() * active;
      } else if (instruction.stream == Stream::compute) {
        add_kernel(instruction, time.seconds() * active, forward, ring, probe);
        probe.all_layers += time.seconds() * iterations;
      }
    }
  }

  double& exchange_of(RingTimes& ring, std::size_t ring_step) const {
    if (ring_step > ring_) return ring.behind;
    if (ring_step == ring_) return ring.beside_last;
    return ring_step == 1 ? ring.first : ring.between;
  }

  void add_kernel(const Instruction& instruction, double seconds, bool forward, RingTimes& ring, Probe& probe) const {
    const bool attends = instruction.opcode == Opcode::attention || instruction.opcode == Opcode::merge ||
                         instruction.opcode == Opcode::rank_wait;
    if (!attends) {
      probe.kernels += seconds;
      probe.forward_kernels += forward ? seconds : 0;
    } else if (instruction.ring_step > 0) {
      (instruction.ring_step + 1 == ring_ ? ring.last_step : ring.step) += seconds;
    } else {
      ring.own += seconds;
      probe.own += seconds;
      probe.forward_own += forward ? seconds : 0;
    }
  }

  PricedProgram priced_;
  std::size_t ring_;
  RingPace pace_;
};

}  // namespace

Probes::Probes(const LoweringOptions& lowering, std::int64_t capacity) : lowering_(lowering) {
  const Mesh& mesh = lowering.mesh;
  plan_.policy = "probes";
  plan_.ranks = mesh.hdp;
  plan_.capacity = capacity;
  plan_.layers = layers_of_pass(lowering);
  plan_.expert_ranks = expert_ranks(mesh.experts(), mesh.tp);
  plan_.schedule.resize(static_cast<std::size_t>(mesh.hdp));
  add(1, 1);
}

std::size_t Probes::add(std::int64_t tokens, std::int64_t degree, double offload, bool token_wise) {
  MicroBatch probe;
  probe.group = {HdpRank(0)};
  for (std::int64_t rank = 1; rank + 1 < degree; ++rank) probe.group.emplace_back(static_cast<std::size_t>(rank));
  if (degree > 1) probe.group.emplace_back(static_cast<std::size_t>(plan_.ranks - 1));
  probe.offload = offload;
  probe.token_wise = token_wise;
  return add_probe(std::move(probe), tokens);
}

std::size_t Probes::add_neighbours(std::int64_t tokens, std::int64_t degree) {
  MicroBatch probe;
  for (std::int64_t rank = 0; rank < degree; ++rank) probe.group.emplace_back(static_cast<std::size_t>(rank));
  return add_probe(std::move(probe), tokens);
}

std::size_t Probes::add_probe(MicroBatch probe, std::int64_t tokens) {
  const std::size_t index = plan_.micro_batches.size();
  probes_.insert(index);
  const std::vector<HdpRank> others = other_ranks(probe.group);
  const std::int64_t all = tokens * std::ssize(probe.group);
  add(std::move(probe), all);
  for (const HdpRank rank : others) {
    MicroBatch alone;
    alone.group = {rank};
    add(std::move(alone), tokens);
  }
  return index;
}

std::size_t Probes::add_pack(std::int64_t tokens, std::int64_t each) {
  const std::size_t index = add(each, 1);
  std::vector<Span>& spans = plan_.micro_batches[index].spans;
  while (std::ssize(spans) < tokens / each) {
    spans.push_back({SequenceId(plan_.sequence_tokens.size()), 0, each});
    plan_.sequence_tokens.push_back(each);
  }
  return index;
}

std::vector<Probe> Probes::run(const Machine& machine) {
  add(1, 1);
  const Program program(plan_, lowering_);
  const Pipeline& pipeline = program.pipeline();
  std::vector<Probe> probes(plan_.micro_batches.size());
  for (std::size_t pass = 0; pass < pipeline.passes(); ++pass) {
    const PassId id(pass);
    const std::size_t micro_batch = pipeline.micro_batch_id(id).index();
    if (!probes_.contains(micro_batch)) continue;
    PassReader(program, id, ring_hops(program, id, machine), machine).add_to(pipeline.pass(id), probes[micro_batch]);
  }
  return probes;
}

// The other ranks of the group's expert groups, which must run equally many micro-batches.
std::vector<HdpRank> Probes::other_ranks(const std::vector<HdpRank>& group) const {
  std::vector<HdpRank> others;
  const auto size = static_cast<std::size_t>(plan_.expert_ranks);
  for (const HdpRank of : group) {
    for (std::size_t i = 0; i < size; ++i) {
      const HdpRank rank(of.index() / size * size + i);
      const bool known = std::find(group.begin(), group.end(), rank) != group.end() ||
                         std::find(others.begin(), others.end(), rank) != others.end();
      if (!known) others.push_back(rank);
    }
  }
  return others;
}

void Probes::add(MicroBatch micro_batch, std::int64_t tokens) {
  for (const HdpRank rank : micro_batch.group) {
    plan_.schedule[rank.index()].emplace_back(plan_.micro_batches.size());
  }
  micro_batch.spans = {{SequenceId(plan_.sequence_tokens.size()), 0, tokens}};
  plan_.sequence_tokens.push_back(tokens);
  plan_.micro_batches.push_back(std::move(micro_batch));
}

}  // namespace hdpsim
