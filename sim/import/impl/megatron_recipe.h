#pragma once

#include <cstdint>

#include "sim/import/impl/megatron_arguments.h"
#include "sim/import/training_run.h"

namespace hdpsim {

/// What of a model decides how it is trained.
struct TrainedLayers {
  bool has_experts = false;
  std::int64_t layers_of_stage = 0;  ///< Of a chunk of a stage.
};

/// How a run of Megatron-LM trains: states, gradients and their exchange, tensor parallelism, kernels, recomputation,
/// as `mesh`, `kernels` and `memory` of a study. `run` has its degrees and devices. Problems and what a study cannot
/// say go to the diagnostics and notes of the arguments.
void read_megatron_recipe(const MegatronArguments& arguments, const TrainedLayers& model, TrainingRun& run);

}  // namespace hdpsim
