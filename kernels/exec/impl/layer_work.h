#pragma once

#include "kernels/exec/impl/activations.h"
#include "kernels/exec/impl/dense_kernels.h"
#include "kernels/exec/parameters.h"
#include "sim/model/transformer.h"

namespace hdpsim::kernels::exec {

/// The base of rotary positions: Llama's default. Model files may differ, but sim/model does not read it.
inline constexpr double rotation_base = 10000;

/// What a part of a layer works with.
struct LayerWork {
  DenseKernels& kernels;
  const Transformer& kind;  ///< The device's shard of the model, with all layers of the kind of this one.
  const LayerTensors& tensors;
  const LayerActivations& layer;
  const SharedActivations& shared;
};

}  // namespace hdpsim::kernels::exec
