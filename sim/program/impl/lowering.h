#pragma once

#include <cstdint>
#include <vector>

#include "sim/model/layers.h"
#include "sim/model/parameters.h"
#include "sim/model/shares.h"
#include "sim/program/expert_layer.h"
#include "sim/program/program.h"

namespace hdpsim {

/// The part of the model that one pass runs, and what the pass does with it.
struct PassWork {
  std::vector<LayerRun> layers;
  bool embedding;
  bool head;
  bool first_of_stage;  // the first pass of the micro-batch on its stage
  PassKind kind;
  bool gathers;                  // all-gathers parameters layer by layer in forward
  bool reduces;                  // reduces gradients layer by layer
  bool repeats_forward = false;  // before backward

  [[nodiscard]] bool forward() const { return kind == PassKind::whole || kind == PassKind::forward; }
  [[nodiscard]] bool backward() const { return kind != PassKind::forward && kind != PassKind::weight_gradient; }
};

/// Writes the program of one pass block by block: the layers of a kind are one block, wherever they stand in the pass.
[[nodiscard]] MicroBatchProgram lowered(const PassWork& work, const MicroBatch& micro_batch,
                                        const LoweringOptions& options, const ModelParts& parts,
                                        const ExpertTokens& expert_tokens);

}  // namespace hdpsim
