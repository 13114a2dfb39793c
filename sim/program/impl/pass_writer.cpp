#include "sim/program/impl/pass_writer.h"

#include <algorithm>
#include <utility>

#include "sim/model/dtensor.h"
#include "sim/program/ring_launches.h"

namespace hdpsim {
namespace {

constexpr std::size_t usual_instructions = 32;  // of a block, for which memory is taken at once

template <typename Item>
Index added(std::vector<Item>& table, Item item) {
  table.push_back(std::move(item));
  return static_cast<Index>(table.size()) - 1;
}

}  // namespace

void PassWriter::open_block(std::int64_t iterations, Direction direction) {
  Block& block = program_.blocks.emplace_back();
  block.iterations = iterations;
  block.direction = direction;
  block.body.reserve(usual_instructions);
  open_ = {.layer = &options_.model, .operations = &parts_.ends, .direction = direction};
}

void PassWriter::open_layers(const LayerRun& layers, Direction direction) {
  open_block(layers.count, direction);
  program_.blocks.back().kind = layers.kind;
  open_.layer = &parts_.kinds[layers.kind].model;
  open_.operations = &parts_.kinds[layers.kind].operations;
  open_.run = layers;
}

Index PassWriter::add(Opcode opcode, Stream stream, Index work) {
  Instruction instruction;
  instruction.opcode = opcode;
  instruction.stream = stream;
  instruction.work = work;
  instruction.first_iteration = open_.first_iteration;
  if (stream == Stream::compute) {
    if (!open_.first_kernel) open_.first_kernel = next();
    if (!open_.first_kernel_of_all && open_.first_iteration == 0) open_.first_kernel_of_all = next();
  }
  if (opcode != Opcode::collective) open_.dense_before.reset();
  open_.gathering.reset();
  return added(body(), instruction);
}

Index PassWriter::add_ring(Opcode opcode, Stream stream, Index work, std::size_t ring_step) {
  const Index index = add(opcode, stream, work);
  body().back().ring_step = static_cast<std::uint32_t>(ring_step);
  return index;
}

Index PassWriter::bytes(Bytes amount) {
  return added(program_.bytes, amount);
}

Index PassWriter::pool(const PoolBytes& amount) {
  return added(program_.pools, amount);
}

Index PassWriter::attention(Attention work) {
  work.dropout = recipe().dropout;
  return added(program_.attention, std::move(work));
}

Index PassWriter::attention(Attention work, SpanLaunch::Part part) {
  program_.span_launches.push_back({run().kind, part});
  return attention(std::move(work));
}

Index PassWriter::memory_bound(const MemoryBound& work) {
  return added(program_.memory_bound, work);
}

const GroupWork& PassWriter::group_work() {
  if (!group_work_) group_work_.emplace(micro_batch_);
  return *group_work_;
}

const std::array<ServedHalf, 2>& PassWriter::served_halves() {
  if (!served_halves_) served_halves_ = hdpsim::served_halves(micro_batch_);
  return *served_halves_;
}

void PassWriter::choose_keys(const RingAttention& all, std::size_t ring_step) {
  if (!all.scores || all.scores->blocks.empty()) return;
  if (all.target) add_ring(Opcode::attention, Stream::compute, attention(*all.target), ring_step);
  add_ring(Opcode::attention, Stream::compute, attention(*all.scores), ring_step);
  if (all.scores->direction == Direction::backward) return;
  const double pairs = pairs_of(*all.scores);
  add_ring(Opcode::merge, Stream::compute, memory_bound({Bytes(2 * fp32_bytes).scaled(pairs), 1}), ring_step);
}

Index PassWriter::attend(const BusiestLaunch& busiest, std::size_t ring_step, std::optional<Index> needed) {
  Attention launch = empty_launch(layer(), tp(), sharing(), open_.direction);
  launch.blocks = busiest.blocks;
  add_ring(Opcode::attention, Stream::compute, attention(std::move(launch)), ring_step);
  if (needed) body().back().after(*needed);
  return add_idle(busiest.idle, static_cast<std::uint32_t>(ring_step));
}

void PassWriter::attend_local() {
  if (!local_) return;
  RingAttention alone = local_->attention(layer(), tp(), open_.direction);
  choose_keys(alone, local_step);
  add_ring(Opcode::attention, Stream::compute, attention(std::move(alone.own)), local_step);
  add_idle(local_->idle_attention(layer()), local_step);
}

Index PassWriter::add_idle(double share, std::uint32_t ring_step) {
  return add_ring(Opcode::rank_wait, Stream::compute, added(program_.idle_shares, share), ring_step);
}

void PassWriter::share(const SharingCollective& op, std::optional<Index> needed) {
  add_share(Stream::compute, op, needed);
}

Index PassWriter::share_overlapped(const SharingCollective& op, std::optional<Index> needed) {
  return add_share(Stream::comm, op, needed);
}

Index PassWriter::add_share(Stream stream, const SharingCollective& op, std::optional<Index> needed) {
  const Index index = add(Opcode::share, stream, added(program_.shares, op));
  if (needed) body().back().after(*needed);
  return index;
}

void PassWriter::end_stretch() {
  if (stretch_.empty()) return;
  add_dense(work_of(*open_.operations, device_rows(tokens_, tp(), recipe()), stretch_, open_.direction, gradients()));
  stretch_.clear();
}

void PassWriter::all_gather(DensePart part) {
  if (!recipe().sequence_parallel && part != DensePart::head) return;
  collective(CollectiveKind::all_gather, part, chunks_of(part));
}

void PassWriter::reduce_scatter(DensePart part) {
  const bool cut = recipe().sequence_parallel;
  collective(cut ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce, part, overlap_of_sum(part));
}

// For the gradient of a weight, which a frozen head has not.
void PassWriter::gather_input_again(DensePart part) {
  if (part == DensePart::head && recipe().lora.is_on()) return;
  if (recipe().gathers_inputs_again()) collective(CollectiveKind::all_gather, part, Overlap::input_gradient);
}

void PassWriter::gather_received(Direction direction) {
  if (recipe().sequence_parallel || tp() == 1) return;
  open_block(1, direction);
  collective(CollectiveKind::all_gather, DensePart::mlp_residual, Overlap::none);
}

void PassWriter::experts() {
  add_steps(expert_layer(expert_layer_here(), open_.direction));
}

void PassWriter::expert_activations() {
  add_steps(hdpsim::expert_activations(expert_layer_here()));
}

void PassWriter::add_steps(std::vector<ExpertStep> steps) {
  end_stretch();
  for (ExpertStep& step : steps) {
    if (auto* part = std::get_if<LinearPart>(&step)) {
      add_dense(std::move(*part));
    } else if (auto* wait = std::get_if<ExpertWait>(&step)) {
      add_wait(*wait);
    } else if (auto* exchanged = std::get_if<ExchangedExperts>(&step)) {
      add_exchanged(std::move(*exchanged));
    } else if (work_.kind != PassKind::weight_gradient && tp() > 1) {
      add_collective(std::get<TensorParallelCollective>(step));
    }
  }
}

void PassWriter::add_exchanged(ExchangedExperts experts) {
  const bool travels = work_.kind != PassKind::weight_gradient;
  const Index first = next();
  if (experts.once_per_node && travels) {
    std::vector<MixtureOfExperts>& mixtures = program_.mixtures;
    if (mixtures.empty() || mixtures.back() != *layer().moe) mixtures.push_back(*layer().moe);
    experts.to_experts.once_per_node = experts.back.once_per_node = static_cast<Index>(mixtures.size()) - 1;
  }
  if (travels) add_collective(experts.to_experts);
  if (travels && experts.gathered) add_collective(*experts.gathered);
  add_dense(std::move(experts.even));
  if (experts.wait) add_wait(*experts.wait);
  if (!travels) return;
  if (experts.reduced) add_collective(*experts.reduced);
  program_.blocks.back().exchanged_experts.push_back({first, next()});
  add_collective(experts.back);
}

void PassWriter::issue() {
  if (recipe().host_issues) add(Opcode::issue, Stream::compute, 0);
}

MicroBatchProgram PassWriter::take() {
  if (program_.blocks.empty()) open_block(1, Direction::forward);  // this pass has no work
  return std::move(program_);
}

void PassWriter::collective(CollectiveKind kind, DensePart part, Overlap overlap) {
  if (tp() == 1) return;
  end_stretch();
  const bool is_loss =
      part == DensePart::head && kind == CollectiveKind::all_gather && open_.direction == Direction::forward;
  Bytes amount = is_loss ? Bytes(tokens_ * tp() * fp32_bytes) : hidden_bytes(model(), tokens_);
  // torchao casts what devices gather for a product in fp8 (float8_tensor_parallel.py).
  const bool is_cast = kind == CollectiveKind::all_gather && part != DensePart::head && recipe().casts_in_products();
  if (is_cast) amount = Bytes(row_bytes(recipe().products, tokens_ * model().hidden, 0));
  const bool product_follows = overlap == Overlap::chunks && kind == CollectiveKind::all_gather;
  const std::optional<OverlappedProduct> hiding = product_follows ? std::nullopt : product_before(overlap);
  const bool in_chunks = product_follows || (hiding && hiding->in_chunks);
  const bool has_slices = copies_slices(recipe()) && !is_loss;
  const bool sums = kind == CollectiveKind::reduce_scatter;
  if (has_slices && sums && !in_chunks) copy(amount * 2);
  add_collective({kind, amount, part, open_.direction, hiding});
  if (has_slices && sums && in_chunks) copy(amount + amount / tp());
  if (has_slices && !sums && !in_chunks) copy(amount * 2);
  if (product_follows) open_.gathering = static_cast<Index>(program_.collectives.size()) - 1;
}

void PassWriter::copy(Bytes traffic) {
  LinearPart kernel;
  kernel.direction = open_.direction;
  kernel.add({traffic, 1});
  add_dense(std::move(kernel));
}

// Of PyTorch each layer is compiled by itself, which is what brings products and collectives together.
PassWriter::Overlap PassWriter::chunks_of(DensePart part) const {
  const bool is_end = part == DensePart::embedding || part == DensePart::final_norm;
  const bool joined = part != DensePart::head && !(is_end && recipe().is_pytorch());
  const bool overlaps = recipe().overlap_tp && recipe().sequence_parallel && joined;
  return overlaps ? Overlap::chunks : Overlap::none;
}

std::optional<OverlappedProduct> PassWriter::product_before(Overlap overlap) const {
  if (overlap == Overlap::none || !open_.dense_before) return std::nullopt;
  const LinearPart& part = program_.dense[*open_.dense_before];
  // What backward reduces is the gradient of an input.
  std::optional<std::size_t> last = overlap == Overlap::weight_gradient ? part.last_of_weights : part.last_of_inputs;
  if (part.direction == Direction::forward && !part.gemms.empty()) last = part.gemms.size() - 1;
  if (!last) return std::nullopt;
  return OverlappedProduct{*open_.dense_before, static_cast<Index>(*last), overlap == Overlap::chunks};
}

std::int64_t PassWriter::products_of(DensePart part) const {
  if (part == DensePart::qkv) return 3;
  return part == DensePart::mlp && layer().gated_mlp ? 2 : 1;
}

// An input-gradient pass has no product for the weight's gradient.
PassWriter::Overlap PassWriter::overlap_of_sum(DensePart part) const {
  const bool is_input = part == DensePart::qkv || part == DensePart::mlp || part == DensePart::head;
  if (open_.direction == Direction::backward && !hides_sum_of(products_of(part), recipe())) return Overlap::none;
  if (open_.direction == Direction::forward || !recipe().overlap_tp_gradients || !is_input) return chunks_of(part);
  return work_.kind == PassKind::input_gradient ? Overlap::none : Overlap::weight_gradient;
}

void PassWriter::add_collective(const TensorParallelCollective& op) {
  add(Opcode::collective, Stream::compute, added(program_.collectives, op));
}

void PassWriter::add_dense(LinearPart part) {
  const std::optional<Index> gathering = open_.gathering;
  const Index work = added(program_.dense, std::move(part));
  const Index index = add(Opcode::dense, Stream::compute, work);
  if (awaited_) body()[index].after(*std::exchange(awaited_, std::nullopt));
  if (local_) add_idle(local_->idle_dense(), 0);
  open_.dense_before = work;
  if (gathering && !program_.dense[work].gemms.empty()) {
    program_.collectives[*gathering].overlapped = OverlappedProduct{work, 0, true};
  }
}

void PassWriter::add_wait(const ExpertWait& wait) {
  add(Opcode::expert_wait, Stream::compute, added(program_.expert_waits, wait));
}

Gradients PassWriter::gradients() const {
  if (open_.direction == Direction::forward) return Gradients::all;
  if (work_.kind == PassKind::input_gradient) return Gradients::inputs;
  return work_.kind == PassKind::weight_gradient ? Gradients::weights : Gradients::all;
}

}  // namespace hdpsim
