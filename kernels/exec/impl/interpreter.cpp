#include "kernels/exec/impl/interpreter.h"

#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

#include "sim/base/check.h"

namespace hdpsim::kernels::exec {
namespace {

// The direction of the block's last dense work: a backward block may begin with recomputed forward work. Forward for a
// block without dense work.
Direction direction_of(const MicroBatchProgram& program, const Block& block) {
  Direction direction = Direction::forward;
  for (const Instruction& instruction : block.body) {
    if (instruction.opcode == Opcode::dense) direction = program.dense[instruction.work].direction;
  }
  return direction;
}

bool splits_backward(const Schedule& schedule) {
  const auto kinds = schedule.kinds();
  return std::find(kinds.begin(), kinds.end(), PassKind::weight_gradient) != kinds.end();
}

}  // namespace

Interpreter::~Interpreter() {
  try {
    for (const CopyUnderWay& copy : copies_under_way_) (void)parts_.copies.wait(copy.ticket);
  } catch (const std::exception&) {  // The error that ended the step is the one to report.
  }
}

void Interpreter::run(const Program& program, PassId id, HdpRank rank, const Batch& batch) {
  at_ = {.program = &program, .id = id, .pass = program.pipeline().pass(id), .rank = rank, .batch = &batch};
  instructions_ = program.pass(id);
  if (program.pipeline().source(id)) {
    (void)parts_.recorder.timed(Activity::bubble, [&] { parts_.messages.wait(id); });
  }
  const bool takes_share = instructions_.blocks.front().body.front().opcode == Opcode::overhead;
  if (!takes_share) enter_pass();
  for (std::uint32_t block = 0; block < instructions_.blocks.size();) {
    const std::uint32_t end = end_of_layers(block);
    end > block + 1 ? run_layers(block, end) : run_block(block);
    block = end;
  }
  leave_pass();
}

const Block& Interpreter::enter_block(std::uint32_t index) {
  const Block& block = instructions_.blocks[index];
  at_.block = index;
  at_.direction = direction_of(instructions_, block);
  next_prefetch_ = 0;
  return block;
}

std::uint32_t Interpreter::end_of_layers(std::uint32_t first) const {
  const std::vector<Block>& blocks = instructions_.blocks;
  std::uint32_t end = first + 1;
  const auto belongs = [&](const Block& block) { return block.kind && block.direction == blocks[first].direction; };
  while (blocks[first].kind && end < blocks.size() && belongs(blocks[end])) ++end;
  return end;
}

// Each layer is the next iteration of the loop over its kind.
void Interpreter::run_layers(std::uint32_t first, std::uint32_t end) {
  std::vector<std::uint32_t> done(end - first);
  const LayerRange layers = at_.activations->chunk().layers;
  for (std::uint32_t i = 0; i < layers.count; ++i) {
    at_.direction = instructions_.blocks[first].direction;
    at_.layer = layer_of(i);
    const std::size_t kind = at_.activations->kind_of(at_.layer);
    std::uint32_t index = first;
    while (instructions_.blocks[index].kind != kind) ++index;
    wait_for_exchange();  // it belongs to another block
    const Block& block = enter_block(index);
    at_.iteration = done[index - first]++;
    run_iteration(block);
  }
  wait_for_exchange();
}

void Interpreter::run_block(std::uint32_t index) {
  const Block& block = enter_block(index);
  for (std::int64_t iteration = 0; iteration < block.iterations; ++iteration) {
    at_.iteration = static_cast<std::uint32_t>(iteration);
    at_.layer = layer_of(at_.iteration);
    prefetch_ahead(block);
    run_iteration(block);
  }
  wait_for_exchange();
  while (!copies_under_way_.empty()) wait_for_first_copy();
}

void Interpreter::run_iteration(const Block& block) {
  wait_for_exchange();  // it belongs to another layer
  for (std::uint32_t i = 0; i < block.body.size(); ++i) {
    at_.instruction = i;
    if (block.body[i].opcode == Opcode::prefetch) continue;  // it ran ahead
    if (block.body[i].active(at_.iteration, block.iterations)) issue(block.body[i]);
  }
}

// A ring of several ranks begins with its first send/recv, which is posted before the first attention.
bool Interpreter::begins_ring(const Instruction& instruction) const {
  const std::vector<BodyRange>& rings = instructions_.blocks[at_.block].rings;
  if (rings.empty()) return instruction.opcode == Opcode::attention;
  return std::any_of(rings.begin(), rings.end(), [&](const BodyRange& ring) { return ring.first == at_.instruction; });
}

// The direction of the next attention.
Direction Interpreter::ring_direction() const {
  const std::vector<Instruction>& body = instructions_.blocks[at_.block].body;
  const auto attends = [](const Instruction& i) { return i.opcode == Opcode::attention; };
  const auto next = std::find_if(body.begin() + at_.instruction, body.end(), attends);
  return instructions_.attention[next->work].direction;
}

void Interpreter::begin_ring() {
  parts_.core.begin(ring_direction(), core_tensors());
}

void Interpreter::issue(const Instruction& instruction) {
  wait_for_dependencies(instruction);
  if (begins_ring(instruction) && !mixes()) begin_ring();
  if (instruction.opcode == Opcode::exchange) return exchange(instruction);
  if (instruction.opcode == Opcode::share) return share(instruction);
  if (instruction.opcode == Opcode::offload) return copy(instruction, at_.iteration);
  const auto when = parts_.recorder.timed(activity_of(instruction.opcode), [&] { compute(instruction); });
  parts_.recorder.add(record_of(instruction), when);
}

InstructionRecord Interpreter::record_of(const Instruction& instruction) const {
  return {.rank = at_.rank,
          .micro_batch = at_.pass.micro_batch,
          .block = at_.block,
          .iteration = at_.iteration,
          .instruction = at_.instruction,
          .opcode = instruction.opcode,
          .stream = instruction.stream,
          .begin = {},
          .end = {},
          .chunk = static_cast<std::uint32_t>(at_.pass.chunk),
          .stage = static_cast<std::uint32_t>(at_.pass.stage),
          .kind = at_.pass.kind};
}

// Compute instructions have ended, or come earlier in the queue, when an instruction is issued; only send/recv and
// copies need a wait.
void Interpreter::wait_for_dependencies(const Instruction& instruction) {
  for (const Dependency& dependency : instruction.needed()) {
    const auto is_needed = [&](const UnderWay& what) {
      return dependency.instruction == what.instruction && dependency.iterations_back + what.iteration == at_.iteration;
    };
    if (under_way_ && is_needed(*under_way_)) wait_for_exchange();
    const auto needed = std::find_if(copies_under_way_.begin(), copies_under_way_.end(),
                                     [&](const CopyUnderWay& copy) { return is_needed(copy.what); });
    if (needed == copies_under_way_.end()) continue;
    for (auto before = needed - copies_under_way_.begin(); before >= 0; --before) wait_for_first_copy();
  }
}

std::int64_t Interpreter::layer_of(std::uint32_t iteration) const {
  if (at_.activations == nullptr) return 0;
  const LayerRange layers = at_.activations->chunk().layers;
  return at_.direction == Direction::forward ? layers.first + iteration : layers.first + layers.count - 1 - iteration;
}

void Interpreter::copy(const Instruction& instruction, std::uint32_t iteration) {
  InstructionRecord record = record_of(instruction);
  record.iteration = iteration;
  const auto way = instruction.opcode == Opcode::offload ? HostCopies::Way::to_host : HostCopies::Way::to_device;
  const auto ticket = parts_.copies.start(at_.activations->copies(layer_of(iteration), way), way);
  copies_under_way_.push_back({{parts_.recorder.add(record), record.instruction, iteration}, ticket});
}

void Interpreter::prefetch_ahead(const Block& block) {
  const auto is_prefetch = [](const Instruction& i) { return i.opcode == Opcode::prefetch; };
  const auto prefetch = std::find_if(block.body.begin(), block.body.end(), is_prefetch);
  if (prefetch == block.body.end()) return;
  at_.instruction = static_cast<std::uint32_t>(prefetch - block.body.begin());
  // Iterations before this one are done.
  const auto may_start = [&](std::uint32_t iteration) {
    const std::span<const Dependency> needed = prefetch->needed();
    return std::all_of(needed.begin(), needed.end(),
                       [&](const Dependency& d) { return iteration < at_.iteration + d.iterations_back; });
  };
  for (; next_prefetch_ < block.iterations && may_start(next_prefetch_); ++next_prefetch_) {
    if (prefetch->active(next_prefetch_, block.iterations)) copy(*prefetch, next_prefetch_);
  }
}

// Copies end in the order of their starts.
void Interpreter::wait_for_first_copy() {
  const CopyUnderWay first = copies_under_way_.front();
  copies_under_way_.pop_front();
  (void)parts_.recorder.timed(Activity::offload_stall, [&] {
    const auto [begin, end] = parts_.copies.wait(first.ticket);
    parts_.recorder.set(first.what.record, {begin, end});
  });
}

void Interpreter::wait_for_exchange() {
  if (!under_way_) return;
  const Mark since = parts_.recorder.now();
  const auto [record, instruction, iteration, of_states] = *std::exchange(under_way_, std::nullopt);
  of_states ? parts_.mixing.wait() : parts_.core.wait_for_exchange();
  parts_.recorder.end_exchange(record, since);
  if (of_states) (void)parts_.recorder.timed(Activity::attention, [&] { parts_.mixing.finish(); });
}

void Interpreter::exchange(const Instruction& instruction) {
  wait_for_exchange();  // a stream runs one instruction at a time
  (void)parts_.recorder.timed(Activity::attention, [&] { parts_.core.add_arrived(); });
  const Mark begin = parts_.recorder.now();
  mixes() ? parts_.mixing.exchange() : parts_.core.exchange(static_cast<int>(instruction.ring_step));
  under_way_ = {parts_.recorder.add(record_of(instruction), {begin, {}}), at_.instruction, at_.iteration, mixes()};
}

void Interpreter::share(const Instruction& instruction) {
  const SharingCollective& op = instructions_.shares[instruction.work];
  if (op.tensor == SharedTensor::states) {
    exchange(instruction);
    return wait_for_exchange();
  }
  const GroupCore::Tensors tensors = core_tensors();
  const Mark begin = parts_.recorder.now();
  const std::uint64_t record = parts_.recorder.add(record_of(instruction));
  const Activity activity = activity_of(instruction.opcode);
  (void)parts_.recorder.timed(activity, [&] { parts_.core.prepare(op, tensors); });
  const Mark posted = parts_.recorder.now();
  parts_.core.meet(op);
  parts_.recorder.end_exchange(record, posted);
  (void)parts_.recorder.timed(activity, [&] { parts_.core.finish(op, tensors); });
  parts_.recorder.set(record, {begin, parts_.recorder.now()});
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
      if (instruction.ring_step == local_step) return parts_.core.attend_local();
      return parts_.core.attend(static_cast<int>(instruction.ring_step));
    case Opcode::merge:
      return parts_.core.put_in_order();
    case Opcode::rank_wait:
      return;  // a rank with less to do waits where it meets the others
    case Opcode::exchange:
    case Opcode::offload:
    case Opcode::prefetch:
    case Opcode::expert_wait:
    case Opcode::issue:
    case Opcode::gather:
    case Opcode::reduce:
    case Opcode::share:
      break;
  }
  HDPSIM_CHECK(false, "instruction {} of block {} cannot be executed", at_.instruction, at_.block);
}

// The fixed work of a micro-batch on the host: selecting its tokens and their places.
void Interpreter::take_share() {
  const auto rank = static_cast<int>(at_.rank.index());
  Share share = share_of(at_.program->plan(), at_.pass.micro_batch, rank, at_.batch->tokens, instructions_.sharing);
  share.chunk = chunk_place();
  parts_.in_flight.add(at_.pass.micro_batch, std::move(share));
  enter_pass();
}

std::optional<ChunkPlace> Interpreter::chunk_place() const {
  const Pipeline& pipeline = at_.program->pipeline();
  const MicroBatch& micro_batch = pipeline.micro_batch(at_.id);
  if (!micro_batch.continues && !pipeline.is_continued(at_.pass.micro_batch)) return std::nullopt;
  const Span& span = micro_batch.spans.front();
  const std::size_t sequence = span.sequence.index();
  return ChunkPlace{sequence, span.begin, span.tokens, at_.program->plan().sequence_tokens[sequence]};
}

bool Interpreter::drops_activations() const {
  const Pipeline& pipeline = at_.program->pipeline();
  return pipeline.micro_batch(at_.id).repeats_forward && !pipeline.has_whole_passes();
}

void Interpreter::begin_activations() {
  const auto& [id, chunk, stage, kind] = at_.pass;
  const Pipeline& pipeline = at_.program->pipeline();
  const LoweringOptions& options = at_.program->options();
  const ModelChunk layers{pipeline.chunk_map().deal().layers(options.model.layers, chunk),
                          chunk + 1 == pipeline.chunks()};
  parts_.in_flight.begin(id, chunk, layers,
                         {.recompute = options.recipe.recompute,
                          .offload = pipeline.micro_batch(at_.id).offload,
                          .splits_backward = splits_backward(pipeline.schedule())});
}

void Interpreter::enter_pass() {
  const auto& [id, chunk, stage, kind] = at_.pass;
  const bool is_forward = pass_direction() == Direction::forward;
  if (is_forward || drops_activations()) begin_activations();
  at_.share = &parts_.in_flight.share(id);
  at_.activations = &parts_.in_flight.activations(id, chunk);
  parts_.core.join(*at_.share);
  parts_.mixing.join(*at_.share);
  if (!is_forward && drops_activations() && chunk > 0) {
    parts_.in_flight.restore(id, chunk, parts_.dense.received(*at_.activations, Direction::forward));
  }
  parts_.messages.take(at_.id, parts_.dense.received(*at_.activations, pass_direction()));
}

void Interpreter::leave_pass() {
  const auto& [id, chunk, stage, kind] = at_.pass;
  parts_.messages.send(at_.id, parts_.dense.sent(*at_.activations, pass_direction()));
  if (goes_backward(kind) && at_.activations->chunk().has_head) {
    parts_.losses.add(at_.activations->shared().loss, at_.share->rows());
  }
  if (releases_activations(kind)) return parts_.in_flight.end(id, chunk);
  if (!drops_activations()) return;
  if (chunk > 0) {
    parts_.in_flight.keep_received(id, chunk, parts_.dense.received(*at_.activations, Direction::forward),
                                   parts_.dense.message_bytes(*at_.activations));
  }
  parts_.in_flight.drop(id, chunk);
}

}  // namespace hdpsim::kernels::exec
