#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/model/parameters.h"
#include "sim/plan/served_cut.h"
#include "sim/program/impl/lowering.h"
#include "sim/program/local_attention.h"
#include "sim/program/ring_launches.h"
#include "sim/program/uneven_attention.h"

namespace hdpsim {

/// The index of an instruction in its block's body, or of work in the program's tables.
using Index = std::uint32_t;

/// Writes the instructions of one pass, block by block. The dense work between two collectives is one instruction;
/// without tensor parallelism there are no such collectives. The constructor's arguments must outlive the writer.
class PassWriter {
 public:
  PassWriter(const PassWork& work, const MicroBatch& micro_batch, const LoweringOptions& options,
             const ModelParts& parts, const ExpertTokens& expert_tokens)
      : work_(work),
        micro_batch_(micro_batch),
        options_(options),
        parts_(parts),
        open_{.layer = &options.model, .operations = &parts.ends},
        expert_tokens_(expert_tokens),
        tokens_(micro_batch.tokens_per_rank()) {
    program_.all_reduce = options.recipe.reduces_all();
    program_.dense.reserve(usual_entries);
    program_.attention.reserve(usual_entries);
    program_.span_launches.reserve(usual_entries);
    program_.memory_bound.reserve(usual_entries);
    program_.bytes.reserve(usual_entries);
    program_.blocks.reserve(usual_entries);
    if (options.mesh.tp > 1) program_.collectives.reserve(2 * usual_entries);
    program_.sharing = sharing_of(micro_batch, options);
    if (micro_batch.local.empty()) return;
    local_.emplace(micro_batch, options.model);
    tokens_ = local_->tokens();
  }

  // ---- Properties of the pass

  [[nodiscard]] const PassWork& work() const { return work_; }
  [[nodiscard]] const MicroBatch& micro_batch() const { return micro_batch_; }
  [[nodiscard]] const LoweringOptions& options() const { return options_; }
  [[nodiscard]] const Recipe& recipe() const { return options_.recipe; }
  [[nodiscard]] const Transformer& model() const { return options_.model; }
  /// The model with all of its layers of the kind of the open block's, or as it is if the block has no layers.
  [[nodiscard]] const Transformer& layer() const { return *open_.layer; }
  /// The layers of the open block, if it has some.
  [[nodiscard]] const LayerRun& run() const { return open_.run; }
  [[nodiscard]] const Transformer& kind(const LayerRun& layers) const { return parts_.kinds[layers.kind].model; }
  /// What is known of the layers of the open block, which has some.
  [[nodiscard]] const LayerKind& kind_of_layers() const { return parts_.kinds[open_.run.kind]; }
  /// Trained parameters of one layer on a device, and what is gathered for it.
  [[nodiscard]] const DeviceParameters& layer_parameters(const LayerRun& layers) const {
    return parts_.kinds[layers.kind].trained;
  }
  [[nodiscard]] const PoolBytes& layer_gather(const LayerRun& layers) const {
    return parts_.kinds[layers.kind].gathered;
  }
  [[nodiscard]] const ExpertTokens& expert_tokens() const { return expert_tokens_; }
  [[nodiscard]] std::int64_t tp() const { return options_.mesh.tp; }
  [[nodiscard]] const GroupSharing& sharing() const { return program_.sharing; }
  /// Of a micro-batch with a group of several ranks. Computed once.
  [[nodiscard]] const GroupWork& group_work();
  /// Of a micro-batch under TokenCut::served. Computed once.
  [[nodiscard]] const std::array<ServedHalf, 2>& served_halves();
  /// Tokens of the HDP rank, or the `count` of the last continue_with_tokens(); where ranks hold spans alone, those of
  /// the busiest rank.
  [[nodiscard]] std::int64_t tokens() const { return tokens_; }
  /// Its tokens of what the group shares.
  [[nodiscard]] std::int64_t shared_tokens() const { return local_ ? local_->shared_tokens() : tokens_; }
  [[nodiscard]] bool has_local_spans() const { return local_.has_value(); }
  void continue_with_tokens(std::int64_t count) { tokens_ = count; }
  /// A rank without tokens only computes experts for others.
  [[nodiscard]] bool has_tokens() const { return tokens_ > 0; }
  [[nodiscard]] bool has_work(const LayerRun& layers) const { return has_tokens() || kind(layers).moe; }

  // ---- Instructions

  void open_block(std::int64_t iterations, Direction direction);
  /// What the block has so far fetches for the layer while the previous one computes; the layer itself follows.
  void begin_layer() { open_.first_of_layer = next(); }
  /// Everything that is written from here on runs from this iteration of the block on.
  void begin_at_iteration(std::uint32_t iteration) { open_.first_iteration = iteration; }
  /// A block whose iterations are layers.
  void open_layers(const LayerRun& layers, Direction direction);
  /// Sets the direction of everything that is written from here on.
  void turn(Direction direction) { open_.direction = direction; }
  Index add(Opcode opcode, Stream stream, Index work);
  Index add_ring(Opcode opcode, Stream stream, Index work, std::size_t ring_step);
  [[nodiscard]] std::vector<Instruction>& body() { return program_.blocks.back().body; }
  [[nodiscard]] std::int64_t iterations() const { return program_.blocks.back().iterations; }
  [[nodiscard]] Index last() { return next() - 1; }
  /// The instruction that is written next.
  [[nodiscard]] Index next() { return static_cast<Index>(body().size()); }
  /// The first kernel of the block. Empty if it has none so far.
  [[nodiscard]] std::optional<Index> first_kernel() const { return open_.first_kernel; }
  /// The first kernel that runs in all iterations, also in those without recompute; the block must have one.
  [[nodiscard]] Index first_kernel_of_all() const { return open_.first_kernel_of_all.value(); }
  /// The first instruction since begin_layer(); the block must have one.
  [[nodiscard]] Index first_of_layer() const { return open_.first_of_layer; }
  [[nodiscard]] const std::vector<BodyRange>& rings() const { return program_.blocks.back().rings; }
  /// The instructions from `first_exchange` on, up to the one that is written next, are one ring.
  void end_ring(Index first_exchange) { program_.blocks.back().rings.push_back({first_exchange, next()}); }

  [[nodiscard]] Index bytes(Bytes amount);
  [[nodiscard]] Index pool(const PoolBytes& amount);
  [[nodiscard]] Index attention(Attention work);
  /// One that is this part of the attention to the micro-batch's spans.
  [[nodiscard]] Index attention(Attention work, SpanLaunch::Part part);
  [[nodiscard]] Index memory_bound(const MemoryBound& work);
  /// Adds the scores of the keys among which queries choose (RingAttention::scores), and forward their choice, whose
  /// kernel reads the scores that those before it wrote in fp32; in backward what the indexer learns from. Nothing
  /// where there are none.
  void choose_keys(const RingAttention& attention, std::size_t ring_step);
  /// Adds the attention of the busiest rank of the group, which waits for `needed`, and behind it the wait of the mean
  /// rank. Returns the latter.
  Index attend(const BusiestLaunch& busiest, std::size_t ring_step, std::optional<Index> needed = {});
  /// Adds the attention of the busiest rank to what it holds alone, and behind it the wait of the mean rank; nothing
  /// where no rank holds spans alone.
  void attend_local();
  /// Adds a collective among the ranks of the group, for which everything after it waits, from the end of `needed` on.
  void share(const SharingCollective& op, std::optional<Index> needed = {});
  /// Adds one that overlaps with kernels. Returns it.
  Index share_overlapped(const SharingCollective& op, std::optional<Index> needed);

  // ---- Dense work and its collectives

  void run(DensePart part) { stretch_.push_back(part); }
  void end_stretch();
  /// The next dense work waits for an instruction.
  void await(Index instruction) { awaited_ = instruction; }
  /// Without sequence parallelism all devices have all tokens: all_gather() then does nothing except for the head, and
  /// reduce_scatter() adds an all-reduce.
  void all_gather(DensePart part);
  void reduce_scatter(DensePart part);
  /// Backward, between a part and its reduce-scatter: all-gathers the part's input again if it was kept sharded.
  void gather_input_again(DensePart part);
  /// All-gathers what came from another stage, which sends each device its share. Only without sequence parallelism.
  void gather_received(Direction direction);
  /// Adds the experts in place of a dense MLP. A weight-gradient pass has their products, but no communication.
  void experts();
  /// Adds the recompute of the experts' activations alone.
  void expert_activations();
  /// Adds the wait for the host to issue all kernels of the iteration, if Recipe::host_issues.
  void issue();

  [[nodiscard]] MicroBatchProgram take();

 private:
  static constexpr std::size_t usual_entries = 8;  ///< Of a table, for which memory is taken at once.

  /// The product that hides a collective.
  enum class Overlap {
    none,
    chunks,           ///< The product whose input it gathers or whose output it reduces, in chunks.
    input_gradient,   ///< Backward: the last product before it that computes the gradient of an input ...
    weight_gradient,  ///< ... or of a weight.
  };

  void collective(CollectiveKind kind, DensePart part, Overlap overlap);
  void copy(Bytes traffic);  ///< One kernel; see sim/model/dtensor.h.
  /// Of PyTorch, whose input is that of a part.
  [[nodiscard]] std::int64_t products_of(DensePart part) const;
  [[nodiscard]] Overlap chunks_of(DensePart part) const;
  /// The same for a reduction; that of an input's gradient may overlap with the product for the weight's gradient.
  [[nodiscard]] Overlap overlap_of_sum(DensePart part) const;
  /// The product of a collective that follows its product. No value if nothing hides it.
  [[nodiscard]] std::optional<OverlappedProduct> product_before(Overlap overlap) const;
  void add_collective(const TensorParallelCollective& op);
  void add_dense(LinearPart part);
  Index add_idle(double share, std::uint32_t ring_step);
  void add_wait(const ExpertWait& wait);
  void add_steps(std::vector<ExpertStep> steps);
  void add_exchanged(ExchangedExperts experts);
  Index add_share(Stream stream, const SharingCollective& op, std::optional<Index> needed);
  [[nodiscard]] ExpertLayer expert_layer_here() const {
    return {layer(), *open_.operations, options_.experts, tp(), tokens_, expert_tokens_, gradients()};
  }
  /// The gradients that dense work of the pass computes.
  [[nodiscard]] Gradients gradients() const;

  /// What is known of the block that is being written.
  struct OpenBlock {
    const Transformer* layer = nullptr;
    const LayerOperations* operations = nullptr;  ///< Of its layers, or of the embedding and the head.
    LayerRun run = {};
    Direction direction = Direction::forward;
    std::optional<Index> first_kernel = {};
    std::optional<Index> first_kernel_of_all = {};
    Index first_of_layer = 0;
    std::uint32_t first_iteration = 0;
    /// The dense work that the next instruction follows, with nothing but collectives in between.
    std::optional<Index> dense_before = {};
    /// The collective that the next instruction follows, if it gathers in chunks what that instruction's product reads.
    std::optional<Index> gathering = {};
  };

  const PassWork& work_;
  const MicroBatch& micro_batch_;
  const LoweringOptions& options_;
  const ModelParts& parts_;
  OpenBlock open_;
  ExpertTokens expert_tokens_;
  std::int64_t tokens_;
  std::vector<DensePart> stretch_;  ///< Dense parts that are not written yet.
  std::optional<Index> awaited_;    ///< The instruction that the next dense work waits for.
  std::optional<GroupWork> group_work_;
  std::optional<std::array<ServedHalf, 2>> served_halves_;
  std::optional<LocalWork> local_;  ///< Of a micro-batch with local spans.
  MicroBatchProgram program_;
};

}  // namespace hdpsim
