#pragma once

#include "sim/program/impl/pass_writer.h"

namespace hdpsim {

/// A layer's forward, with experts or a dense MLP.
void layer_forward(PassWriter& writer, const LayerRun& of);
/// Its backward, without what is computed again before it. Ends the iteration's kernels.
void layer_backward(PassWriter& writer, const LayerRun& of);
/// The gradients of its weights alone.
void layer_weights(PassWriter& writer, const LayerRun& of);

}  // namespace hdpsim
