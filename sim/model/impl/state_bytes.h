#pragma once

#include <cstdint>

#include "sim/base/units.h"
#include "sim/model/memory.h"
#include "sim/model/recipe.h"
#include "sim/model/transformer.h"

namespace hdpsim {

/// What a device keeps of its parameters between micro-batches, and what its host keeps for it.
struct StateBytes {
  Bytes parameters;
  Bytes gradients;
  Bytes optimizer;
  Bytes host;  ///< Gradients, optimizer states and parameters (HostStates).
};

/// Those of a device with its part of the experts. Frozen parameters have neither gradients nor an optimizer. What
/// ZeRO shards, gradients from stage 2 and parameters from stage 3 on, is there in full for two layers, gradients and
/// parameters alike. Weights in fp8 are there by rows and by columns where they are whole (Transformer Engine,
/// Float8Tensor and its transpose), and by rows in shards. O(kinds of layers).
[[nodiscard]] StateBytes state_bytes(const Transformer& model, const DeviceShape& shape, const Recipe& recipe,
                                     const ExpertDivision& experts);

}  // namespace hdpsim
