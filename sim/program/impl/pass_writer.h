#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/program/impl/lowering.h"

namespace hdpsim {

/// Of an instruction in its block's body, or of work in the program's tables.
using Index = std::uint32_t;

/// Writes down the instructions of one pass, block by block. Dense work is one instruction from one collective to the
/// next, of which there is none without tensor parallelism. What it refers to must outlive it.
class PassWriter {
 public:
  PassWriter(const PassWork& work, const MicroBatch& micro_batch, const LoweringOptions& options,
             const Transformer& dense_model, const ExpertTokens& expert_tokens)
      : work_(work),
        micro_batch_(micro_batch),
        options_(options),
        dense_model_(dense_model),
        expert_tokens_(expert_tokens),
        tokens_(micro_batch.tokens_per_rank()) {
    program_.all_reduce = options.sharding.zero == 0;
  }

  // ---- What the pass is about

  [[nodiscard]] const PassWork& work() const { return work_; }
  [[nodiscard]] const MicroBatch& micro_batch() const { return micro_batch_; }
  [[nodiscard]] const LoweringOptions& options() const { return options_; }
  [[nodiscard]] const Transformer& model() const { return options_.model; }
  /// As the layers of a run are.
  [[nodiscard]] const Transformer& model_of(const LayerRun& layers) const {
    return layers.has_experts ? options_.model : dense_model_;
  }
  [[nodiscard]] const ExpertTokens& expert_tokens() const { return expert_tokens_; }
  [[nodiscard]] std::int64_t tp() const { return options_.mesh.tp; }
  [[nodiscard]] std::size_t ring() const { return micro_batch_.group.size(); }
  /// Of the HDP rank, or those that `count` says from here on.
  [[nodiscard]] std::int64_t tokens() const { return tokens_; }
  void continue_with_tokens(std::int64_t count) { tokens_ = count; }
  [[nodiscard]] bool gathers_inputs_again() const {
    return options_.overlap_tp_gradients && options_.dense.sequence_parallel;
  }
  /// Without tokens a rank computes experts for others, and nothing else.
  [[nodiscard]] bool has_tokens() const { return tokens_ > 0; }
  [[nodiscard]] bool has_work(const LayerRun& layers) const { return has_tokens() || layers.has_experts; }

  // ---- Instructions

  void open_block(std::int64_t iterations, Direction direction);
  /// Of what is written from here on.
  void turn(Direction direction) { direction_ = direction; }
  Index add(Opcode opcode, Stream stream, Index work);
  Index add_ring(Opcode opcode, Stream stream, Index work, std::size_t ring_step);
  [[nodiscard]] std::vector<Instruction>& body() { return program_.blocks.back().body; }
  [[nodiscard]] Index last() { return static_cast<Index>(body().size()) - 1; }

  [[nodiscard]] Index bytes(Bytes amount);
  [[nodiscard]] Index attention(Attention work);
  [[nodiscard]] Index memory_bound(const MemoryBound& work);

  // ---- Dense work and its collectives

  void run(DensePart part) { stretch_.push_back(part); }
  void end_stretch();
  /// Without sequence parallelism all devices have all tokens: there is nothing to gather, and sums are wanted whole.
  void all_gather(DensePart part);
  void reduce_scatter(DensePart part);
  /// Backward, behind a part that has been run and before its reduce-scatter: the part's input, where it is kept cut.
  void gather_input_again(DensePart part);
  /// What came from another stage, which sends each device its share.
  void gather_received(Direction direction);
  /// In place of a dense MLP. A pass for the gradients of weights alone has the products and nothing that travels.
  void experts();
  /// Of experts, the activations that are done again.
  void expert_activations();
  /// The host's issue of all kernels of the iteration.
  void issue();

  [[nodiscard]] MicroBatchProgram take();

 private:
  void collective(CollectiveKind kind, DensePart part, Beside beside);
  [[nodiscard]] Beside chunks_of(DensePart part) const;
  /// Chunks too, but for the gradient of an input beside that of a weight.
  [[nodiscard]] Beside beside_sum_of(DensePart part) const;
  void add_collective(const TensorParallelCollective& op);
  void add_dense(LinearPart part);
  void add_steps(std::vector<ExpertStep> steps);
  [[nodiscard]] ExpertLayer expert_layer_here() const {
    return {model(), options_.experts, tp(), tokens_, expert_tokens_};
  }
  [[nodiscard]] LinearPart of_this_pass(LinearPart part) const;

  const PassWork& work_;
  const MicroBatch& micro_batch_;
  const LoweringOptions& options_;
  const Transformer& dense_model_;  ///< As its layers are that have no experts.
  ExpertTokens expert_tokens_;
  std::int64_t tokens_;
  Direction direction_ = Direction::forward;
  std::vector<DensePart> stretch_;  ///< Not written yet.
  MicroBatchProgram program_;
};

// ---- Instructions of the block that others wait with

[[nodiscard]] bool has_kernel(PassWriter& writer);
/// The first on the compute stream.
[[nodiscard]] Instruction& first_kernel(PassWriter& writer);
/// The first of those that iterations which compute nothing again have, too.
[[nodiscard]] Instruction& first_kernel_of_all(PassWriter& writer);
/// The first behind what is fetched beside the layer before.
[[nodiscard]] Instruction& first_of_layer(PassWriter& writer);

}  // namespace hdpsim
