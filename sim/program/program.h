#pragma once

#include <cstdint>

#include "sim/base/units.h"
#include "sim/cluster/placement.h"
#include "sim/model/experts.h"
#include "sim/model/recompute.h"
#include "sim/model/transformer.h"
#include "sim/model/work.h"
#include "sim/plan/plan.h"
#include "sim/program/instruction.h"
#include "sim/program/pipeline.h"

namespace hdpsim {

/// What is sharded over the data-parallel group (ZeRO), and when it is gathered and reduced.
struct PoolSharding {
  /// ZeRO stage (Rajbhandari et al. 2020). 0: nothing is sharded; 1: the optimizer; 2: gradients too; 3: parameters
  /// too. From 2 on, every micro-batch reduces the gradients of each layer after the layer's backward, and with 3 it
  /// gathers the parameters of each layer while the previous layer computes, forward and backward (FSDP, Zhao et al.
  /// 2023). Both move the model's elements, not fp32 (but see fp32_parameters). Below 2, gradients are reduced and
  /// parameters gathered once per step.
  std::int64_t zero = 1;
  std::int64_t gradient_bytes = 4;  ///< Bytes per element of gradients that are summed over micro-batches and ranks.
  /// The reduction of gradients, per layer or in a pipeline per chunk, overlaps with a rank's last passes instead of
  /// following them (ZeRO stages 0 and 1).
  bool overlap_grad_reduce = false;
  /// The all-gather of parameters, per layer or per chunk, overlaps with a rank's first passes instead of preceding
  /// them (ZeRO stages 1 and 2).
  bool overlap_param_gather = false;
  /// ZeRO stage 3: parameters are sharded and gathered in fp32, as under autocast (DenseRules::autocast).
  bool fp32_parameters = false;

  friend bool operator==(const PoolSharding&, const PoolSharding&) = default;
  /// Every pass needs these collectives layer by layer: they are instructions of the pass.
  [[nodiscard]] bool reduces_in_pass() const { return zero >= 2; }
  [[nodiscard]] bool gathers_in_pass() const { return zero == 3; }
  /// These collectives overlap with a rank's last backward and with its first forward, too. In a pipeline they then run
  /// between its passes (Program::pool_work).
  [[nodiscard]] bool reduces_by_layer(bool last) const { return reduces_in_pass() || (overlap_grad_reduce && last); }
  [[nodiscard]] bool gathers_by_layer(bool first) const {
    return gathers_in_pass() || (overlap_param_gather && zero > 0 && first);
  }
};

/// What lowering needs in addition to the plan.
struct LoweringOptions {
  Transformer model;
  Mesh mesh;
  /// Bytes per element of the key and value gradients that the backward ring sends: bf16 2, fp32 4.
  std::int64_t dkv_bytes_per_element = 2;
  /// A separate kernel merges a ring step's output with the previous ones; otherwise the attention kernel accumulates
  /// it.
  bool separate_merge = true;
  /// What backward recomputes, layer by layer: modules of the MLP's half before the MLP's backward, and modules of
  /// attention's half before attention's backward. With the projection, whose output the MLP's half needs, everything
  /// is recomputed before the layer's backward.
  Recompute recompute = {};
  PipelineOptions pipeline = {};
  ExpertLayout experts = {};  ///< For a model with experts; its ep is that of the mesh (checked).
  DenseRules dense = {};
  PoolSharding sharding = {};
  bool overlap_tp = false;  ///< Tensor-parallel collectives overlap with their products in chunks.
  /// In the backward of QKV, of the MLP's first products and of the head, the reduction of the input's gradient
  /// overlaps with the product for the weight's gradient. Under sequence parallelism these products keep their input
  /// sharded, and backward all-gathers it again, overlapping with the product for the input's gradient (Megatron-LM,
  /// tensor_parallel/layers.py, LinearWithGradAccumulationAndAsyncCommunication; Korthikanti et al. 2022, section
  /// 4.2.2). Experts, routed and shared, do not use this. Without this option, gathered inputs are kept, as in the
  /// executor.
  bool overlap_tp_gradients = false;
  bool host_issues = false;  ///< The host issues kernels one by one, and the device may have to wait for it.
};

/// Parameters of the layers, the embedding and the head that one device of a stage holds, whole experts included. A
/// model with tied embeddings has the table once on every stage that has the embedding or the head.
[[nodiscard]] std::int64_t parameters_of_stage(const Transformer& model, const Mesh& mesh, const ChunkMap& chunks,
                                               std::int64_t stage);

/// The data-parallel collectives that belong to a pass of a pipeline and overlap with other passes: the parameters to
/// gather before the pass, and the gradients to reduce after it. Per device, for all layers of the pass, its embedding
/// and its head.
struct PoolWork {
  Bytes gather;
  Bytes reduction;
};

/// The work of a stage's workers after their last pass, without the collectives that overlap with passes. Whole experts
/// have their own data-parallel group.
struct StepEnd {
  Bytes gradient;           ///< Gradients of a device's parameters, reduced over the data-parallel group.
  MemoryBound optimizer;    ///< Adam on a device's shard, whole experts included, or on all its parameters.
  Bytes parameters;         ///< A device's parameters as elements, all-gathered over the data-parallel group.
  bool all_reduce = false;  ///< ZeRO stage 0: the gradient is all-reduced; otherwise reduce-scattered.
  /// The same for whole experts, over the devices that hold the same experts: every ep-th device of the stage.
  Bytes expert_gradient = {};
  Bytes expert_parameters = {};
  /// Gradients, per device, of parameters that another stage of the rank has too; the two stages sum them. These are
  /// the fp32 gradients of a table that is both embedding and head or, under a schedule with two copies of the model,
  /// those of the device's shard of all parameters.
  Bytes twice = {};
  std::int64_t other_stage = 0;  ///< The stage that has these parameters too.
};

/// The program of one step: a plan, lowered for one model on one mesh. The simulator prices it, an executor runs it.
/// Every worker (HDP rank, stage) runs the passes of its list in order. Before a pass that has a source, it waits for
/// the source's message from another stage of its rank. It sends the result of a pass that has a target, overlapping
/// with the next passes. Instructions are generated on demand, per pass and not per rank.
class Program {
 public:
  /// The plan must have passed the checker, and the model must have a layer for each chunk of the pipeline (checked).
  /// The plan must outlive the program.
  Program(const Plan& plan, LoweringOptions options);

  [[nodiscard]] const Plan& plan() const { return plan_; }
  [[nodiscard]] const LoweringOptions& options() const { return options_; }
  [[nodiscard]] const Pipeline& pipeline() const { return pipeline_; }
  /// The instructions that the workers of a pass execute. O(spans + ranks of the group).
  [[nodiscard]] MicroBatchProgram pass(PassId id) const;
  /// The same for a pipeline of one stage (checked), where every micro-batch is one pass.
  [[nodiscard]] MicroBatchProgram micro_batch(MicroBatchId id) const;
  /// The bytes that every device sends to the device of the pass's target: its share of the hidden states or of their
  /// gradients.
  [[nodiscard]] Bytes message(PassId id) const;
  [[nodiscard]] StepEnd step_end(std::int64_t stage = 0) const;
  /// The data-parallel collectives that overlap with a pass of a pipeline and are not its instructions. Empty with one
  /// stage.
  [[nodiscard]] PoolWork pool_work(PassId id) const;

 private:
  void mark_first_and_last();
  [[nodiscard]] bool is_first(PassId id) const;
  [[nodiscard]] bool is_last(PassId id) const;

  const Plan& plan_;
  LoweringOptions options_;
  Transformer dense_model_;  ///< The model with dense layers only.
  Pipeline pipeline_;
  std::vector<bool> first_;  ///< By micro-batch: it is the first of any of its ranks; empty if not needed.
  std::vector<bool> last_;   ///< By micro-batch: it is the last of any of its ranks; empty if not needed.
  std::vector<ExpertTokens> expert_tokens_;  // by micro-batch; empty without experts
};

}  // namespace hdpsim
