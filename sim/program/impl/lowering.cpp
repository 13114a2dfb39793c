#include "sim/program/impl/lowering.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "sim/base/check.h"
#include "sim/model/memory.h"
#include "sim/program/ring_attention.h"

namespace hdpsim {
namespace {

constexpr std::int64_t fp32_bytes = 4;
constexpr std::uint32_t resident_layers = 2;  // always on the device under offload (ByteScale, section 4.1)

class Lowering {
 public:
  Lowering(const PassWork& work, const MicroBatch& micro_batch, const LoweringOptions& options,
           const ExpertTokens& expert_tokens)
      : work_(work),
        micro_batch_(micro_batch),
        model_(options.model),
        dense_model_(with_dense_layers(options.model)),
        experts_(options.experts),
        expert_tokens_(expert_tokens),
        tp_(options.mesh.tp),
        dkv_bytes_(options.dkv_bytes_per_element),
        separate_merge_(options.separate_merge),
        recompute_(options.recompute),
        dense_(options.dense),
        zero_(options.sharding.zero),
        gradient_bytes_(options.sharding.gradient_bytes),
        gathered_bytes_(options.sharding.fp32_parameters ? fp32_bytes : options.model.element_bytes),
        overlap_tp_(options.overlap_tp),
        host_issues_(options.host_issues),
        tokens_(micro_batch.tokens_per_rank()),
        ring_(micro_batch.group.size()) {}

  MicroBatchProgram run() {
    program_.all_reduce = zero_ == 0;
    if (work_.forward()) forward();
    if (work_.backward()) backward();
    if (work_.kind == PassKind::weight_gradient) weights();
    if (program_.blocks.empty()) open_block(1, Direction::forward);  // nothing to do in this pass
    return std::move(program_);
  }

 private:
  using Index = std::uint32_t;

  void forward() {
    if (work_.first_of_stage) overhead();
    if (work_.gathers) gather_first(parameters_around() + layer_parameters());
    if (!work_.embedding) gather_received(Direction::forward);
    if (work_.embedding && has_tokens()) embedding_forward();
    forward_layers();
    if (work_.head && has_tokens()) head_forward();
  }

  void backward() {
    if (!work_.head) gather_received(Direction::backward);
    if (!work_.head && gathers_again()) gather_first(layer_parameters());
    if (work_.head && has_tokens()) head_backward();
    backward_layers();
    if (work_.embedding && has_tokens()) embedding_backward();
  }

  // What was gathered for the gradients of inputs is still there.
  void weights() {
    if (work_.head && has_tokens()) weights_of({DensePart::head}, 1, head_parameters());
    for (const LayerRun& layers : work_.layers) {
      if (has_work(layers)) weights_of_layers(layers);
    }
    if (work_.embedding && has_tokens()) weights_of({DensePart::embedding}, 1, embedding_parameters());
  }

  void weights_of_layers(const LayerRun& layers) {
    if (!layers.has_experts) {
      return weights_of({DensePart::mlp, DensePart::attention_output, DensePart::qkv}, layers.count,
                        layer_parameters());
    }
    open_block(layers.count, Direction::backward);
    experts();
    if (has_tokens()) {
      run(DensePart::attention_output);
      run(DensePart::qkv);
      end_stretch();
    }
    issue();
  }

  void weights_of(const std::vector<DensePart>& parts, std::int64_t iterations, std::int64_t parameters) {
    open_block(iterations, Direction::backward);
    for (const DensePart part : parts) run(part);
    end_stretch();
    issue();
    reduce(parameters);
  }

  // Without tokens a rank computes experts for others, and nothing else.
  [[nodiscard]] bool has_tokens() const { return tokens_ > 0; }
  [[nodiscard]] bool has_work(const LayerRun& layers) const { return has_tokens() || layers.has_experts; }

  void overhead() {
    open_block(1, Direction::forward);
    add(Opcode::overhead, Stream::compute, 0);
  }

  void embedding_forward() {
    open_block(1, Direction::forward);
    run(DensePart::embedding);
    reduce_scatter(DensePart::embedding);
    end_stretch();
    issue();
  }

  void embedding_backward() {
    open_block(1, Direction::backward);
    all_gather(DensePart::embedding);
    run(DensePart::embedding);
    end_stretch();
    issue();
    reduce(embedding_parameters());
  }

  void head_forward() {
    open_block(1, Direction::forward);
    run(DensePart::final_norm);
    all_gather(DensePart::final_norm);
    run(DensePart::head);
    all_gather(DensePart::head);
    end_stretch();
    issue();
  }

  void head_backward() {
    open_block(1, Direction::backward);
    if (gathers_again()) add(Opcode::gather, Stream::pool, parameters(layer_parameters()));
    run(DensePart::head);
    reduce_scatter(DensePart::head);
    run(DensePart::final_norm);
    end_stretch();
    issue();
    reduce(head_parameters());
  }

  void forward_layers() {
    for (const LayerRun& layers : work_.layers) {
      if (!has_work(layers)) continue;
      open_block(layers.count, Direction::forward);
      if (work_.gathers) gather_next();
      layer_forward(layers);
      issue();
      if (work_.gathers) wait_for_gather();
      if (micro_batch_.offloads()) offload(last(), layers);
    }
  }

  void layer_forward(const LayerRun& of) {
    if (!has_tokens()) return experts();
    run(DensePart::attention_norm);
    all_gather(DensePart::attention_norm);
    run(DensePart::qkv);
    end_stretch();
    forward_ring(last());
    run(DensePart::attention_output);
    reduce_scatter(DensePart::attention_output);
    run(DensePart::mlp_norm);
    if (of.has_experts) {
      experts();
    } else {
      all_gather(DensePart::mlp_norm);
      run(DensePart::mlp);
      reduce_scatter(DensePart::mlp);
    }
    run(DensePart::mlp_residual);
    end_stretch();
  }

  void backward_layers() {
    for (auto layers = work_.layers.rbegin(); layers != work_.layers.rend(); ++layers) {
      if (!has_work(*layers)) continue;
      open_block(layers->count, Direction::backward);
      layer_backward(*layers);
    }
  }

  void layer_backward(const LayerRun& of) {
    const bool prefetched = micro_batch_.offloads();
    if (prefetched) prefetch(of);
    if (gathers_again()) gather_next();
    compute_again(of);
    if (of.has_experts) {
      experts();
      if (!has_tokens()) return issue();
    } else {
      all_gather(DensePart::mlp);
      run(DensePart::mlp);
      reduce_scatter(DensePart::mlp);
    }
    run(DensePart::mlp_norm);
    all_gather(DensePart::attention_output);
    run(DensePart::attention_output);
    end_stretch();
    backward_ring(last());
    const auto behind_ring = static_cast<Index>(body().size());
    run(DensePart::qkv);
    reduce_scatter(DensePart::qkv);
    run(DensePart::attention_norm);
    end_stretch();
    issue();
    if (ring_ > 1) body()[behind_ring].after(last_exchange_);
    if (gathers_again()) wait_for_gather();
    if (prefetched) wait_for_prefetch();
    // A ring that is run again begins when the layer before it has ended.
    Instruction& first = *first_of_layer();
    if (first.opcode == Opcode::exchange) first.after(last(), 1);
    // The memory of a layer is free once its backward has ended; the layer two further on may then come back.
    if (prefetched) body()[0].after(last(), resident_layers);
    reduce(layer_parameters());
  }

  // What backward needs and was not kept.
  void compute_again(const LayerRun& of) {
    direction_ = Direction::forward;
    if (micro_batch_.token_wise && recompute_ != Recompute::full) compute_split_again(of);
    if (recompute_ == Recompute::full) layer_forward(of);
    if (recompute_ == Recompute::selective && has_tokens()) forward_ring(std::nullopt);
    direction_ = Direction::backward;
  }

  // Of the tokens that token-wise offload leaves: from the layer's input and attention's output, which came back, all
  // that lies between and behind them. The two layers that stayed have it.
  void compute_split_again(const LayerRun& of) {
    HDPSIM_CHECK(!of.has_experts, "token-wise offload of layers with experts of {}", model_.name);
    const std::size_t first = body().size();
    const std::int64_t all = std::exchange(tokens_, split_tokens());
    if (has_tokens()) {
      run(DensePart::attention_norm);
      all_gather(DensePart::attention_norm);
      run(DensePart::qkv);
      run(DensePart::attention_output);
      reduce_scatter(DensePart::attention_output);
      run(DensePart::mlp_norm);
      all_gather(DensePart::mlp_norm);
      run(DensePart::mlp_inner);
      end_stretch();
    }
    tokens_ = all;
    for (std::size_t i = first; i < body().size(); ++i) body()[i].first_iteration = resident_layers;
  }

  [[nodiscard]] std::int64_t split_tokens() const {
    return tokens_ - std::llround(micro_batch_.offload * static_cast<double>(tokens_));
  }

  struct RingWork {
    Index own;
    Index step;
  };

  RingWork ring_work(Direction direction) {
    RingAttention ring = ring_attention(micro_batch_, model_, tp_, direction);
    program_.attention.push_back(std::move(ring.own));
    program_.attention.push_back(std::move(ring.step));
    const auto count = static_cast<Index>(program_.attention.size());
    return {count - 2, count - 1};
  }

  // Step k needs the keys and values that exchange k brought. Exchange k writes the buffer that step k - 2 has read
  // (two buffers alternate) and forwards what exchange k - 1 brought; it is posted before the attention of step k - 1.
  // Without `projected` queries, keys and values are there already.
  void forward_ring(std::optional<Index> projected) {
    const auto [own, step] = ring_work(Direction::forward);
    const Index message = bytes(kv_bytes(model_, tokens_, tp_));
    const bool merges = separate_merge_ && ring_ > 1;
    const Index merging = merges ? merge_work() : 0;
    std::vector<Index> computed(ring_);
    std::vector<Index> received(ring_);
    const auto post = [&](std::size_t k) {
      received[k] = add_ring(Opcode::exchange, Stream::comm, message, k);
      if (k >= 2) {
        body().back().after(computed[k - 2]);
      } else if (projected) {
        body().back().after(*projected);
      }
    };
    for (std::size_t k = 0; k < ring_; ++k) {
      if (k + 1 < ring_) post(k + 1);
      computed[k] = add_ring(Opcode::attention, Stream::compute, k == 0 ? own : step, k);
      if (k == 0) continue;
      body().back().after(received[k]);
      if (merges) computed[k] = add_ring(Opcode::merge, Stream::compute, merging, k);
    }
  }

  // As forward, but from step 2 on the message also carries the gradients of the keys and values, one step behind;
  // after the last step they need two more hops to reach their owner, the first of them beside the last step.
  void backward_ring(Index projected) {
    const auto [own, step] = ring_work(Direction::backward);
    const Bytes kv = kv_bytes(model_, tokens_, tp_);
    const Bytes dkv = kv * dkv_bytes_ / model_.element_bytes;
    const Index first = bytes(kv);
    const Index both = bytes(kv + dkv);
    const Index gradient = bytes(dkv);
    std::vector<Index> computed(ring_);
    std::vector<Index> received(ring_);
    const auto post = [&](std::size_t k) {
      const Index message = k == ring_ ? gradient : k == 1 ? first : both;
      last_exchange_ = add_ring(Opcode::exchange, Stream::comm, message, k);
      body().back().after(k < 2 ? projected : computed[k - 2]);
      if (k < ring_) received[k] = last_exchange_;
    };
    for (std::size_t k = 0; k < ring_; ++k) {
      if (ring_ > 1) post(k + 1);
      computed[k] = add_ring(Opcode::attention, Stream::compute, k == 0 ? own : step, k);
      if (k > 0) body().back().after(received[k]);
    }
    if (ring_ == 1) return;
    last_exchange_ = add_ring(Opcode::exchange, Stream::comm, gradient, ring_ + 1);
    body().back().after(computed[ring_ - 1]);
  }

  // fp32 output read and written and the step's output read, for the 3/4 of the queries that an average step
  // touches.
  Index merge_work() {
    const std::int64_t elements = tokens_ * (model_.heads / tp_) * model_.head_dim;
    program_.memory_bound.push_back({Bytes(elements * 3 / 4 * (2 * fp32_bytes + model_.element_bytes)), 1});
    return static_cast<Index>(program_.memory_bound.size()) - 1;
  }

  // Layer i + 2 needs the memory that layer i leaves; the last two layers stay where they are.
  void offload(Index last, const LayerRun& of) {
    const Index copy = add(Opcode::offload, Stream::d2h, bytes(offloaded_bytes(of)));
    body()[copy].last_skipped = resident_layers;
    body()[copy].after(last);
    first_of_layer()->after(copy, resident_layers);
  }

  void prefetch(const LayerRun& of) {
    const Index copy = add(Opcode::prefetch, Stream::h2d, bytes(offloaded_bytes(of)));
    body()[copy].first_iteration = resident_layers;
  }

  // Whatever begins the iteration does, on every stream.
  void wait_for_prefetch() {
    first_kernel()->after(0);
    if (first_of_layer()->stream == Stream::comm) first_of_layer()->after(0);
  }

  std::vector<Instruction>::iterator first_kernel() {
    const auto is_compute = [](const Instruction& i) { return i.stream == Stream::compute; };
    return std::find_if(body().begin(), body().end(), is_compute);
  }

  // The first of the iterations that compute nothing again, too.
  std::vector<Instruction>::iterator first_kernel_of_all() {
    const auto is_always = [](const Instruction& i) { return i.stream == Stream::compute && i.first_iteration == 0; };
    return std::find_if(body().begin(), body().end(), is_always);
  }

  // Behind what is fetched beside the layer before.
  std::vector<Instruction>::iterator first_of_layer() {
    const auto is_fetched = [](const Instruction& i) { return i.stream == Stream::h2d || i.stream == Stream::pool; };
    return std::find_if_not(body().begin(), body().end(), is_fetched);
  }

  // ---- Parameters and gradients over the pool. Those of a layer are gathered while the layer before computes, as soon
  // as the one before that is done with its own; one after the other with the reductions, which take the same links

  [[nodiscard]] bool gathers_again() const { return work_.gathers && zero_ == 3; }

  void gather_first(std::int64_t count) {
    open_block(1, Direction::forward);
    add(Opcode::gather, Stream::pool, parameters(count));
  }

  void gather_next() {
    const Index gather = add(Opcode::gather, Stream::pool, parameters(layer_parameters()));
    body()[gather].last_skipped = 1;
  }

  void wait_for_gather() {
    const auto is_gather = [](const Instruction& i) { return i.opcode == Opcode::gather; };
    const auto gather = std::find_if(body().begin(), body().end(), is_gather);
    gather->after(last(), 1);
    const auto index = static_cast<Index>(gather - body().begin());
    first_kernel()->after(index, 1);
    if (first_kernel_of_all() != first_kernel()) first_kernel_of_all()->after(index, 1);
  }

  void reduce(std::int64_t count) {
    if (!work_.reduces || count == 0 || work_.kind == PassKind::input_gradient) return;
    const Index computed = last();
    const std::int64_t width = zero_ >= 2 ? model_.element_bytes : gradient_bytes_;
    const Index reduction = add(Opcode::reduce, Stream::pool, bytes(Bytes(count * width)));
    body()[reduction].after(computed);
  }

  Index parameters(std::int64_t count) { return bytes(Bytes(count * gathered_bytes_)); }

  // Of one device.
  [[nodiscard]] std::int64_t layer_parameters() const { return divided(layer_parameter_count(model_), tp_); }
  [[nodiscard]] std::int64_t embedding_parameters() const {
    return divided((model_.vocabulary + model_.learned_positions) * model_.hidden, tp_);
  }
  [[nodiscard]] std::int64_t head_parameters() const {
    const bool has_table = work_.embedding && model_.tied_embeddings;
    return divided((has_table ? 0 : model_.vocabulary * model_.hidden) + final_norm_parameters(model_), tp_);
  }
  [[nodiscard]] std::int64_t parameters_around() const {
    return (work_.embedding ? embedding_parameters() : 0) + (work_.head ? head_parameters() : 0);
  }

  [[nodiscard]] Bytes offloaded_bytes(const LayerRun& of) const {
    const ActivationRules rules =
        with_experts({.recompute = recompute_, .sequence_parallel = dense_.sequence_parallel}, model_, experts_);
    const std::vector<KeptTensor> kept = kept_tensors(of.has_experts ? model_ : dense_model_, rules);
    if (micro_batch_.token_wise) return token_wise_bytes(kept, tokens_, tp_, micro_batch_.offload);
    const std::int64_t group_tokens = (expert_tokens_.all + experts_.ep - 1) / experts_.ep;
    return kept_bytes(kept, tokens_, tp_, 0, group_tokens).scaled(micro_batch_.offload);
  }

  // ---- Dense work is one instruction from one collective to the next, of which there is none without tensor
  // parallelism

  void run(DensePart part) { stretch_.push_back(part); }

  void end_stretch() {
    if (stretch_.empty()) return;
    program_.dense.push_back(of_this_pass(dense_work(dense_model_, tokens_, tp_, stretch_, direction_, dense_)));
    stretch_.clear();
    add(Opcode::dense, Stream::compute, static_cast<Index>(program_.dense.size()) - 1);
  }

  // A pass for the gradients of weights alone has the products and nothing that travels.
  void experts() {
    end_stretch();
    for (ExpertStep& step : expert_layer({model_, experts_, tp_, tokens_, expert_tokens_}, direction_)) {
      if (auto* part = std::get_if<LinearPart>(&step)) {
        program_.dense.push_back(of_this_pass(std::move(*part)));
        add(Opcode::dense, Stream::compute, static_cast<Index>(program_.dense.size()) - 1);
      } else if (auto* wait = std::get_if<ExpertWait>(&step)) {
        program_.expert_waits.push_back({of_this_pass(std::move(wait->slowest)), of_this_pass(std::move(wait->even))});
        add(Opcode::expert_wait, Stream::compute, static_cast<Index>(program_.expert_waits.size()) - 1);
      } else if (work_.kind != PassKind::weight_gradient) {
        expert_collective(std::get<TensorParallelCollective>(step));
      }
    }
  }

  void expert_collective(const TensorParallelCollective& op) {
    if (tp_ == 1 && op.kind != CollectiveKind::all_to_all) return;
    program_.collectives.push_back(op);
    add(Opcode::collective, Stream::compute, static_cast<Index>(program_.collectives.size()) - 1);
  }

  [[nodiscard]] LinearPart of_this_pass(LinearPart part) const {
    if (part.direction == Direction::forward) return part;
    if (work_.kind == PassKind::input_gradient) return input_gradients(part);
    return work_.kind == PassKind::weight_gradient ? weight_gradients(part) : part;
  }

  // Without sequence parallelism all devices have all tokens: there is nothing to gather, and sums are wanted whole.
  void all_gather(DensePart part) {
    if (dense_.sequence_parallel || part == DensePart::head) collective(CollectiveKind::all_gather, part);
  }
  void reduce_scatter(DensePart part) {
    collective(dense_.sequence_parallel ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce, part);
  }

  void gather_received(Direction direction) {
    if (dense_.sequence_parallel || tp_ == 1) return;
    open_block(1, direction);
    collective(CollectiveKind::all_gather, DensePart::mlp_residual);
  }

  void issue() {
    if (host_issues_) add(Opcode::issue, Stream::compute, 0);
  }

  void collective(CollectiveKind kind, DensePart part) {
    if (tp_ == 1) return;
    end_stretch();
    const bool is_loss = part == DensePart::head && kind == CollectiveKind::all_gather;
    const Bytes amount = is_loss ? Bytes(tokens_ * tp_ * fp32_bytes) : hidden_bytes(model_, tokens_);
    const bool overlapped = overlap_tp_ && dense_.sequence_parallel && part != DensePart::head;
    program_.collectives.push_back({kind, amount, part, direction_, overlapped});
    add(Opcode::collective, Stream::compute, static_cast<Index>(program_.collectives.size()) - 1);
  }

  Index bytes(Bytes amount) {
    program_.bytes.push_back(amount);
    return static_cast<Index>(program_.bytes.size()) - 1;
  }

  void open_block(std::int64_t iterations, Direction direction) {
    program_.blocks.push_back({iterations, {}});
    direction_ = direction;
  }

  std::vector<Instruction>& body() { return program_.blocks.back().body; }
  Index last() { return static_cast<Index>(body().size()) - 1; }

  Index add_ring(Opcode opcode, Stream stream, Index work, std::size_t ring_step) {
    const Index index = add(opcode, stream, work);
    body().back().ring_step = static_cast<std::uint32_t>(ring_step);
    return index;
  }

  Index add(Opcode opcode, Stream stream, Index work) {
    Instruction instruction;
    instruction.opcode = opcode;
    instruction.stream = stream;
    instruction.work = work;
    body().push_back(instruction);
    return static_cast<Index>(body().size()) - 1;
  }

  PassWork work_;
  const MicroBatch& micro_batch_;
  const Transformer& model_;
  const Transformer dense_model_;  // as its layers are that have no experts
  const ExpertLayout& experts_;
  ExpertTokens expert_tokens_;
  std::int64_t tp_;
  std::int64_t dkv_bytes_;
  bool separate_merge_;
  Recompute recompute_;
  DenseRules dense_;
  std::int64_t zero_;
  std::int64_t gradient_bytes_;
  std::int64_t gathered_bytes_;
  bool overlap_tp_;
  bool host_issues_;
  std::int64_t tokens_;
  std::size_t ring_;
  Direction direction_ = Direction::forward;  // of what is written
  std::vector<DensePart> stretch_;            // not written yet
  Index last_exchange_ = 0;
  MicroBatchProgram program_;
};

}  // namespace

MicroBatchProgram lowered(const PassWork& work, const MicroBatch& micro_batch, const LoweringOptions& options,
                          const ExpertTokens& expert_tokens) {
  return Lowering(work, micro_batch, options, expert_tokens).run();
}

std::int64_t final_norm_parameters(const Transformer& model) {
  return parameter_count(model) - parameters_of_layers(model, 0, model.layers) - embedding_parameter_count(model);
}

}  // namespace hdpsim
