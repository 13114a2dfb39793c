#pragma once

#include <cstdint>

#include "sim/base/units.h"
#include "sim/cluster/placement.h"
#include "sim/model/experts.h"
#include "sim/model/recompute.h"
#include "sim/model/transformer.h"
#include "sim/plan/plan.h"
#include "sim/program/instruction.h"
#include "sim/program/pipeline.h"

namespace hdpsim {

/// What lowering needs beside the plan.
struct LoweringOptions {
  Transformer model;
  Mesh mesh;
  std::int64_t dkv_bytes_per_element =
      2;  ///< Of the key and value gradients that travel the ring backward: bf16 2, fp32 4.
  std::int64_t bytes_per_element = 2;  ///< Of activations and parameters that are sent or copied: bf16 2, fp32 4.
  /// A kernel of its own joins a ring step's output with those before it; otherwise attention adds it up itself.
  bool separate_merge = true;
  /// What backward computes again, layer by layer: a layer's forward before its backward, or its ring attention alone.
  Recompute recompute = Recompute::none;
  PipelineOptions pipeline = {};
  ExpertLayout experts = {};  ///< Of a model with experts; its ep is that of the mesh (checked).
};

/// Parameters of the layers, the embedding and the head that one device of a stage holds, whole experts included. A
/// model that ties its embeddings has the table on the first and on the last stage of a pipeline.
[[nodiscard]] std::int64_t parameters_of_stage(const Transformer& model, const Mesh& mesh,
                                               const PipelineOptions& pipeline, std::int64_t stage);

/// What the workers of a stage do after their last pass: the gradient of the pool, the optimizer shard (ZeRO-1), the
/// parameters. Whole experts have a pool of their own.
struct StepEnd {
  Bytes gradient;         ///< Reduce-scattered over the pool, per device: fp32 gradients of all its parameters.
  MemoryBound optimizer;  ///< Adam on the device's shard, of whole experts too.
  Bytes parameters;       ///< All-gathered over the pool, per device: its parameters, as elements.
  /// Of whole experts, over the devices that hold the same ones: every ep-th of the stage.
  Bytes expert_gradient = {};
  Bytes expert_parameters = {};
  Bytes tied = {};  ///< Summed between the first and the last stage, per device: fp32 gradients of a tied table.
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

 private:
  const Plan& plan_;
  const LoweringOptions& options_;
  Pipeline pipeline_;
  std::vector<ExpertTokens> expert_tokens_;  // by micro-batch; of a model with experts
};

}  // namespace hdpsim
