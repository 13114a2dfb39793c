#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "sim/base/units.h"
#include "sim/cluster/placement.h"
#include "sim/model/experts.h"
#include "sim/model/kept_tensors.h"
#include "sim/model/layer_operations.h"
#include "sim/model/optimizer_work.h"
#include "sim/model/parameters.h"
#include "sim/model/recipe.h"
#include "sim/model/transformer.h"
#include "sim/plan/plan.h"
#include "sim/program/instruction.h"
#include "sim/program/pipeline.h"

namespace hdpsim {

/// What lowering needs in addition to the plan.
struct LoweringOptions {
  Transformer model;
  Mesh mesh;
  Recipe recipe = {};
  PipelineOptions pipeline = {};
  ExpertLayout experts = {};  ///< For a model with experts; its ep is that of the mesh (checked).
};

/// The layers of one kind.
struct LayerKind {
  Transformer model;         ///< The model with layers of this kind alone.
  DeviceParameters trained;  ///< Of a layer on one device.
  /// What is gathered for the layer: with ZeRO stage 3 all of its parameters, and below those that are trained.
  PoolBytes gathered = {};
  LayerOperations operations;
  std::vector<KeptTensor> kept;  ///< By backward; what offload copies.
};

/// What the passes of a program are written from: stated once, because a list of operations takes longer to make than
/// to read.
struct ModelParts {
  std::vector<LayerKind> kinds;
  LayerOperations ends;  ///< Of the embedding and of the head.
};

/// What the programs of all steps of a job are written from.
struct LoweringContext {
  explicit LoweringContext(LoweringOptions job);

  LoweringOptions options;
  ModelParts parts;
  /// Lengths of spans decide on attention's launches alone; on a group of several ranks, and on one rank.
  bool spans_only_attend = false;
  bool spans_only_attend_alone = false;
};

/// What decides on the program of a pass, but for the lengths of the spans that it attends to and the share of its
/// activations that is offloaded: passes of one class have the same instructions and the same work except the launches
/// of attention and the copies of activations. Those that differ in tokens only have instructions that differ in work
/// only.
struct PassClass {
  StagePass pass;  ///< Of micro-batch 0.
  bool begins_on_stage = false;
  bool first = false;  ///< Of any of its ranks.
  bool last = false;
  bool repeats_forward = false;
  bool offloads = false;
  TokenCut cut = TokenCut::per_document;
  std::optional<KeyExchange> exchange = {};  ///< In place of the recipe's.
  std::int64_t ranks = 0;
  std::int64_t tokens = 0;  ///< Per rank.

  [[nodiscard]] PassClass of_any_tokens() const {
    PassClass any = *this;
    any.tokens = 0;
    return any;
  }
  friend bool operator==(const PassClass&, const PassClass&) = default;
};

struct PassClassHash {
  [[nodiscard]] std::size_t operator()(const PassClass& of) const;
};

/// How the group of a micro-batch shares its attention: by the recipe, unless its ranks attend for each other. O(kinds
/// of layers).
[[nodiscard]] GroupSharing sharing_of(const MicroBatch& micro_batch, const LoweringOptions& options);

/// The layers of a pass: those of a device, or of most of a pipeline's chunks (LayerDeal::typical()).
[[nodiscard]] std::int64_t layers_of_pass(const LoweringOptions& job);

/// Parameters of the layers, the embedding and the head that one device of a stage holds, whole experts included. A
/// model with tied embeddings has the table once on every stage that has the embedding or the head.
[[nodiscard]] std::int64_t parameters_of_stage(const Transformer& model, const Mesh& mesh, const ChunkMap& chunks,
                                               std::int64_t stage);

/// The data-parallel collectives that belong to a pass of a pipeline and overlap with other passes: the parameters to
/// gather before the pass, and the gradients to reduce after it. Per device, for all layers of the pass, its embedding
/// and its head.
struct PoolWork {
  PoolBytes gather;
  PoolBytes reduction;
};

/// The work of a stage's workers after their last pass of a step, or of each of its updates (sim/plan/updates.h),
/// without the collectives that overlap with passes.
struct StepEnd {
  PoolBytes gradient;       ///< Gradients of a device's parameters, reduced over the data-parallel group.
  OptimizerWork optimizer;  ///< On a device's shard, whole experts included, or on all its parameters.
  PoolBytes parameters;     ///< A device's parameters as elements, all-gathered over the data-parallel group.
  bool all_reduce = false;  ///< Recipe::reduces_all(): the gradient is all-reduced; otherwise reduce-scattered.
  /// Recipe::updates_whole(): the devices of the group that broadcast `parameters.common`, an equal part each, in place
  /// of an all-gather; 0: none.
  std::int64_t broadcasts = 0;
  /// Gradients, per device, of parameters that another stage of the rank has too; the two stages sum them. These are
  /// the fp32 gradients of a table that is both embedding and head or, under a schedule with two copies of the model,
  /// those of the device's shard of all parameters.
  Bytes twice = {};
  std::int64_t other_stage = 0;  ///< The stage that has these parameters too.
};

/// The program of one step: a plan, lowered for one model on one mesh. The simulator prices it, an executor runs it.
/// Every worker (HDP rank, stage) runs the passes of its list in order. Before a pass that has a source, it waits for
/// the source's message from another stage of its rank. It sends the result of a pass that has a target, overlapping
/// with the next passes or before them (PipelineOptions::overlaps_messages). Instructions are generated on demand, per
/// pass and not per rank.
class Program {
 public:
  /// The plan must have passed the checker, and the layers must be dealt without a problem (LayerDeal::problem();
  /// checked). The plan must outlive the program.
  Program(const Plan& plan, LoweringOptions options);
  /// The same of a job whose steps share what follows from its options.
  Program(const Plan& plan, std::shared_ptr<const LoweringContext> context);

  [[nodiscard]] const Plan& plan() const { return plan_; }
  [[nodiscard]] const LoweringOptions& options() const { return context_->options; }
  [[nodiscard]] const std::shared_ptr<const LoweringContext>& context() const { return context_; }
  [[nodiscard]] const Pipeline& pipeline() const { return pipeline_; }
  [[nodiscard]] GroupSharing sharing(const MicroBatch& micro_batch) const { return sharing_of(micro_batch, options()); }
  /// The instructions that the workers of a pass execute. O(spans + ranks of the group).
  [[nodiscard]] MicroBatchProgram pass(PassId id) const;
  /// The class of a pass; empty if the lengths of its spans decide on more than its launches of attention and its
  /// copies of activations, or those of a pass that overlaps with it. O(spans).
  [[nodiscard]] std::optional<PassClass> class_of(PassId id) const;
  /// Replaces the launches of attention and the bytes of activations' copies in the program of another pass of the same
  /// class by those of this pass. O(spans log spans + instructions).
  void attend(PassId id, MicroBatchProgram& program) const;
  /// The same where every micro-batch is one pass (checked).
  [[nodiscard]] MicroBatchProgram micro_batch(MicroBatchId id) const;
  /// Whether two passes have the same program on one rank each and run beside such passes, or are one pass. O(spans).
  [[nodiscard]] bool are_alike(PassId a, PassId b) const;
  /// The bytes that every device sends to the device of the pass's target: its share of the hidden states or of their
  /// gradients, and forward of the choice of keys that the next chunk's first layer takes.
  [[nodiscard]] Bytes message(PassId id) const;
  [[nodiscard]] StepEnd step_end(std::int64_t stage = 0) const;
  /// The data-parallel collectives that overlap with a pass of a pipeline and are not its instructions. Empty with one
  /// stage.
  [[nodiscard]] PoolWork pool_work(PassId id) const;

 private:
  void mark_first_and_last();
  /// Bytes a token of the choice of keys that the first of these layers takes from the one before it.
  [[nodiscard]] Bytes choice_taken_by(const LayerRange& range) const;
  [[nodiscard]] bool are_alike_alone(PassId a, PassId b) const;
  [[nodiscard]] const std::vector<LayerRun>& layers_of(const StagePass& pass) const {
    return layers_[static_cast<std::size_t>(pass.chunk)];
  }
  [[nodiscard]] bool is_first(PassId id) const;
  [[nodiscard]] bool is_last(PassId id) const;
  [[nodiscard]] std::vector<DealtMatrices> matrices_of(std::int64_t stage) const;
  /// The tensors among the parameters of a stage: matrices, tables, and the norms of layers and of the output.
  [[nodiscard]] std::int64_t tensors_of(std::int64_t stage) const;

  const Plan& plan_;
  std::shared_ptr<const LoweringContext> context_;
  Pipeline pipeline_;
  std::vector<std::vector<LayerRun>> layers_;  ///< By chunk.
  std::vector<bool> first_;  ///< By micro-batch: it is the first of its update on any rank; empty if not needed.
  std::vector<bool> last_;   ///< By micro-batch: any rank runs it backward last in its update; empty if not needed.
  std::vector<ExpertTokens> expert_tokens_;  // by micro-batch; empty without experts
  std::vector<Bytes> choice_of_token_;       // that a chunk takes from the one before it
};

}  // namespace hdpsim
