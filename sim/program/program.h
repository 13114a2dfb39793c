#pragma once

#include <cstdint>

#include "sim/base/units.h"
#include "sim/cluster/placement.h"
#include "sim/model/recompute.h"
#include "sim/model/transformer.h"
#include "sim/plan/plan.h"
#include "sim/program/instruction.h"

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
};

/// What every rank does after its last micro-batch: the gradient of the pool, the optimizer shard (ZeRO-1), the
/// parameters.
struct StepEnd {
  Bytes gradient;         ///< Reduce-scattered over the pool, per device: fp32 gradients of all its parameters.
  MemoryBound optimizer;  ///< Adam on the device's shard.
  Bytes parameters;       ///< All-gathered over the pool, per device: its parameters, as elements.
};

/// The program of one step: what the plan becomes for one model on one mesh. The simulator prices it, an executor runs
/// it. Instructions are generated when asked for, per micro-batch and not per rank.
class Program {
 public:
  /// The plan must have passed the checker; pp must be 1 (checked). Both must outlive the program.
  Program(const Plan& plan, const LoweringOptions& options);

  [[nodiscard]] const Plan& plan() const { return plan_; }
  [[nodiscard]] const LoweringOptions& options() const { return options_; }
  /// O(spans + ranks of the group).
  [[nodiscard]] MicroBatchProgram micro_batch(MicroBatchId id) const;
  [[nodiscard]] StepEnd step_end() const;

 private:
  const Plan& plan_;
  const LoweringOptions& options_;
};

}  // namespace hdpsim
