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

/// What of the model is sharded over the pool, and when it is gathered and reduced.
struct PoolSharding {
  /// 0: nothing is sharded; 1: the optimizer; 2: gradients too; 3: parameters too (Rajbhandari et al. 2020). From 2 on
  /// every micro-batch reduces the gradients of each layer behind its backward, and with 3 it gathers the parameters of
  /// each layer while the layer before computes, forward and backward (FSDP, Zhao et al. 2023): both in elements, not
  /// in fp32. Below, the pool reduces and gathers once a step.
  std::int64_t zero = 1;
  std::int64_t gradient_bytes = 4;  ///< Of an element where gradients are summed over micro-batches and ranks.
  /// The gradients of a layer, in a pipeline those of a chunk, are reduced beside a rank's last passes, not behind them
  /// (below level 2).
  bool overlap_grad_reduce = false;
  /// The parameters of a layer, or a chunk, are gathered beside a rank's first passes, not before them (level 1 and 2).
  bool overlap_param_gather = false;
  /// Level 3: parameters are sharded and gathered in fp32, as under autocast (DenseRules::autocast).
  bool fp32_parameters = false;

  friend bool operator==(const PoolSharding&, const PoolSharding&) = default;
  [[nodiscard]] bool reduces_by_layer(bool last) const { return zero >= 2 || (overlap_grad_reduce && last); }
  [[nodiscard]] bool gathers_by_layer(bool first) const {
    return zero == 3 || (overlap_param_gather && zero > 0 && first);
  }
};

/// What lowering needs beside the plan.
struct LoweringOptions {
  Transformer model;
  Mesh mesh;
  std::int64_t dkv_bytes_per_element =
      2;  ///< Of the key and value gradients that travel the ring backward: bf16 2, fp32 4.
  /// A kernel of its own joins a ring step's output with those before it; otherwise attention adds it up itself.
  bool separate_merge = true;
  /// What backward computes again, layer by layer: modules of the MLP's half before the MLP's backward, those of
  /// attention's half before attention's. With the projection, which the MLP's half begins with, all before the layer's.
  Recompute recompute = {};
  PipelineOptions pipeline = {};
  ExpertLayout experts = {};  ///< Of a model with experts; its ep is that of the mesh (checked).
  DenseRules dense = {};
  PoolSharding sharding = {};
  bool overlap_tp = false;  ///< Tensor-parallel collectives run in chunks beside their products.
  /// Backward of the products of QKV, of the MLP's inner width and of the head sums the gradient of their input beside
  /// the product for the weight's. Under sequence parallelism, where they keep their input as it is cut, it also gathers
  /// that again, beside the product for the input's gradient (Megatron-LM, tensor_parallel/layers.py,
  /// LinearWithGradAccumulationAndAsyncCommunication; Korthikanti et al. 2022, section 4.2.2). Experts, routed and
  /// shared, have none of this. Otherwise inputs are found gathered, as the executor keeps them.
  bool overlap_tp_gradients = false;
  bool host_issues = false;  ///< The host issues kernels one by one, in time or not.
};

/// Parameters of the layers, the embedding and the head that one device of a stage holds, whole experts included. A
/// model that ties its embeddings has the table once on every stage that has one of the two.
[[nodiscard]] std::int64_t parameters_of_stage(const Transformer& model, const Mesh& mesh, const ChunkMap& chunks,
                                               std::int64_t stage);

/// What a pass of a pipeline leaves to collectives beside all passes: parameters that must be there before it,
/// gradients that can be reduced once it has ended. Per device, of all layers of the pass and its tables.
struct PoolWork {
  Bytes gather;
  Bytes reduction;
};

/// What the workers of a stage do after their last pass. What was reduced or gathered beside passes is not in it. Whole
/// experts have a pool of their own.
struct StepEnd {
  Bytes gradient;           ///< Reduced over the pool, per device: gradients of all its parameters.
  MemoryBound optimizer;    ///< Adam on the device's shard, of whole experts too, or on all its parameters.
  Bytes parameters;         ///< All-gathered over the pool, per device: its parameters, as elements.
  bool all_reduce = false;  ///< Of the gradient, as no optimizer has a shard; otherwise a reduce-scatter.
  /// Of whole experts, over the devices that hold the same ones: every ep-th of the stage.
  Bytes expert_gradient = {};
  Bytes expert_parameters = {};
  /// Gradients of parameters that another stage of the rank has too, which the two sum, per device: in fp32 of a table
  /// that is embedding and head; under a schedule with two copies of the model, of the device's shard of all parameters.
  Bytes twice = {};
  std::int64_t other_stage = 0;  ///< Which has them.
};

/// The program of one step: what the plan becomes for one model on one mesh. The simulator prices it, an executor runs
/// it: every worker (HDP rank, stage) runs the passes of its list in order. Before a pass that has a source it waits
/// for that one's message from another stage of its rank; what a pass with a target computes it sends on, beside the
/// next passes. Instructions are generated when asked for, per pass and not per rank.
class Program {
 public:
  /// The plan must have passed the checker; the pipeline must have a layer for each of its chunks (checked). Both must
  /// outlive the program.
  Program(const Plan& plan, const LoweringOptions& options);

  [[nodiscard]] const Plan& plan() const { return plan_; }
  [[nodiscard]] const LoweringOptions& options() const { return options_; }
  [[nodiscard]] const Pipeline& pipeline() const { return pipeline_; }
  /// What the workers of a pass execute. O(spans + ranks of the group).
  [[nodiscard]] MicroBatchProgram pass(PassId id) const;
  /// The same for a pipeline of one stage (checked), where a micro-batch is one pass.
  [[nodiscard]] MicroBatchProgram micro_batch(MicroBatchId id) const;
  /// What every device sends to that of the pass's target: its share of the hidden states or of their gradients.
  [[nodiscard]] Bytes message(PassId id) const;
  [[nodiscard]] StepEnd step_end(std::int64_t stage = 0) const;
  /// Where a pipeline overlaps them: without stages, and from level 2 of sharding on, they are instructions of the
  /// pass.
  [[nodiscard]] PoolWork pool_work(PassId id) const;

 private:
  void mark_first_and_last();
  [[nodiscard]] bool is_first(PassId id) const;
  [[nodiscard]] bool is_last(PassId id) const;

  const Plan& plan_;
  const LoweringOptions& options_;
  const Transformer dense_model_;  ///< As its layers are that have no experts.
  Pipeline pipeline_;
  std::vector<bool> first_;  ///< By micro-batch: of any of its ranks; empty where nobody asks.
  std::vector<bool> last_;
  std::vector<ExpertTokens> expert_tokens_;  // by micro-batch; of a model with experts
};

}  // namespace hdpsim
