#pragma once

#include <cstdint>
#include <vector>

#include "sim/model/shares.h"
#include "sim/program/expert_layer.h"
#include "sim/program/program.h"

namespace hdpsim {

/// The part of the model and of the work on it that one pass does.
struct PassWork {
  std::vector<LayerRun> layers;
  bool embedding;
  bool head;
  bool first_of_stage;  // of the micro-batch
  PassKind kind;
  bool gathers;  // parameters, layer by layer, in forward
  bool reduces;  // gradients, layer by layer

  [[nodiscard]] bool forward() const { return kind == PassKind::whole || kind == PassKind::forward; }
  [[nodiscard]] bool backward() const { return kind != PassKind::forward && kind != PassKind::weight_gradient; }
};

/// Writes the program of one pass block by block. `dense_model`: as the layers of the model are that have no experts.
[[nodiscard]] MicroBatchProgram lowered(const PassWork& work, const MicroBatch& micro_batch,
                                        const LoweringOptions& options, const Transformer& dense_model,
                                        const ExpertTokens& expert_tokens);

/// The final norm, which goes with the head.
[[nodiscard]] std::int64_t final_norm_parameters(const Transformer& model);

}  // namespace hdpsim
