#include "kernels/exec/impl/interpreter.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "sim/base/check.h"

namespace hdpsim::kernels::exec {
namespace {

// Of its last dense work: a backward block may begin with forward that is computed again. Forward for a block without.
Direction direction_of(const MicroBatchProgram& program, const Block& block) {
  Direction direction = Direction::forward;
  for (const Instruction& instruction : block.body) {
    if (instruction.opcode == Opcode::dense) direction = program.dense[instruction.work].direction;
  }
  return direction;
}

}  // namespace

double Interpreter::run(const Program& program, MicroBatchId id, HdpRank rank, const Batch& batch) {
  at_ = {.program = &program, .micro_batch = id, .rank = rank, .batch = &batch};
  instructions_ = program.micro_batch(id);
  for (std::uint32_t block = 0; block < instructions_.blocks.size(); ++block) run_block(block);
  return loss();
}

void Interpreter::run_block(std::uint32_t index) {
  const Block& block = instructions_.blocks[index];
  at_.block = index;
  at_.direction = direction_of(instructions_, block);
  for (std::int64_t iteration = 0; iteration < block.iterations; ++iteration) {
    at_.iteration = static_cast<std::uint32_t>(iteration);
    at_.layer = at_.direction == Direction::forward ? iteration : block.iterations - 1 - iteration;
    run_iteration(block);
  }
  wait_for_exchange();
}

void Interpreter::run_iteration(const Block& block) {
  wait_for_exchange();  // it belongs to another layer
  for (std::uint32_t i = 0; i < block.body.size(); ++i) {
    at_.instruction = i;
    if (block.body[i].active(at_.iteration, block.iterations)) issue(block.body[i]);
  }
}

// A ring of several begins with its first exchange, which is posted before the first attention.
bool Interpreter::begins_ring(const Instruction& instruction) const {
  if (share_ && share_->documents.ranks() > 1) {
    return instruction.opcode == Opcode::exchange && instruction.ring_step == 1;
  }
  return instruction.opcode == Opcode::attention;
}

// Of the attention that comes next.
Direction Interpreter::ring_direction() const {
  const std::vector<Instruction>& body = instructions_.blocks[at_.block].body;
  const auto attends = [](const Instruction& i) { return i.opcode == Opcode::attention; };
  const auto next = std::find_if(body.begin() + at_.instruction, body.end(), attends);
  return instructions_.attention[next->work].direction;
}

void Interpreter::begin_ring() {
  const LayerActivations a = parts_.activations.layer(at_.layer);
  const SharedActivations& s = parts_.activations.shared();
  if (ring_direction() == Direction::forward) {
    parts_.ring.begin(RingForward{.q = a.q, .kv = a.kv, .o = a.o, .lse = a.lse});
  } else {
    parts_.ring.begin(
        RingBackward{.q = a.q, .kv = a.kv, .o = a.o, .lse = a.lse, .d_o = s.d_o, .d_q = s.d_q, .d_kv = s.d_kv});
  }
}

void Interpreter::issue(const Instruction& instruction) {
  wait_for_dependencies(instruction);
  if (begins_ring(instruction)) begin_ring();
  if (instruction.opcode == Opcode::exchange) return exchange(instruction);
  InstructionRecord record = record_of(instruction);
  const auto [begin, end] = parts_.recorder.timed(activity_of(instruction.opcode), [&] {
    compute(instruction);
    parts_.backend.synchronize();
  });
  record.begin = begin;
  record.end = end;
  parts_.recorder.add(record);
}

InstructionRecord Interpreter::record_of(const Instruction& instruction) const {
  return {.rank = at_.rank,
          .micro_batch = at_.micro_batch,
          .block = at_.block,
          .iteration = at_.iteration,
          .instruction = at_.instruction,
          .opcode = instruction.opcode,
          .stream = instruction.stream,
          .begin = {},
          .end = {}};
}

// Whatever computes has ended when it was issued; only an exchange can be waited for.
void Interpreter::wait_for_dependencies(const Instruction& instruction) {
  for (std::uint32_t d = 0; d < instruction.dependency_count && under_way_; ++d) {
    const Dependency& dependency = instruction.dependencies[d];
    const bool is_under_way = dependency.instruction == under_way_->instruction &&
                              dependency.iterations_back + under_way_->iteration == at_.iteration;
    if (is_under_way) wait_for_exchange();
  }
}

void Interpreter::wait_for_exchange() {
  if (!under_way_) return;
  const Instant since = parts_.recorder.now();
  const std::uint64_t record = std::exchange(under_way_, std::nullopt)->record;
  parts_.ring.wait();
  parts_.recorder.end_exchange(record, since);
}

void Interpreter::exchange(const Instruction& instruction) {
  wait_for_exchange();  // a stream runs one instruction at a time
  (void)parts_.recorder.timed(Activity::attention, [&] { parts_.ring.add_arrived(); });
  InstructionRecord record = record_of(instruction);
  record.begin = parts_.recorder.now();
  parts_.ring.exchange(static_cast<int>(instruction.ring_step));
  under_way_ = {parts_.recorder.add(record), at_.instruction, at_.iteration};
}

void Interpreter::compute(const Instruction& instruction) {
  switch (instruction.opcode) {
    case Opcode::overhead:
      return take_share();
    case Opcode::dense:
      return parts_.dense.run(instructions_.dense[instruction.work], dense_place());
    case Opcode::collective:
      return parts_.dense.collective(instructions_.collectives[instruction.work], dense_place());
    case Opcode::attention:
      return parts_.ring.attend(static_cast<int>(instruction.ring_step));
    case Opcode::merge:
    case Opcode::exchange:
    case Opcode::offload:
    case Opcode::prefetch:
      break;
  }
  HDPSIM_CHECK(false, "instruction {} of block {} cannot be executed", at_.instruction, at_.block);
}

// The fixed work of a micro-batch on the host: whose tokens they are, and where they go.
void Interpreter::take_share() {
  share_ = share_of(at_.program->plan(), at_.micro_batch, static_cast<int>(at_.rank.index()), at_.batch->tokens);
  parts_.activations.begin(*share_);
  parts_.ring.join(*share_);
}

double Interpreter::loss() const {
  std::vector<float> losses(share_->ids.size());
  parts_.backend.download(losses.data(), parts_.activations.shared().loss, losses.size() * sizeof(float));
  return std::accumulate(losses.begin(), losses.end(), 0.0);
}

}  // namespace hdpsim::kernels::exec
