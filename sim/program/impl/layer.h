#pragma once

#include "sim/program/impl/pass_writer.h"

namespace hdpsim {

/// A layer's forward.
void layer_forward(PassWriter& writer, const LayerRun& of);
/// Its parts: from the tokens of attention's norm to queries, keys and values; the core; from its output to the
/// residual stream; and from the tokens of the MLP's norm to the MLP's output, with experts or dense.
void qkv_forward(PassWriter& writer);
void attention_forward(PassWriter& writer);
void projection_forward(PassWriter& writer);
void mlp_forward(PassWriter& writer, const LayerRun& of);

/// Its backward, with what is computed again for it. Ends the iteration's kernels.
void layer_backward(PassWriter& writer, const LayerRun& of);
/// The gradients of its weights alone.
void layer_weights(PassWriter& writer, const LayerRun& of);

}  // namespace hdpsim
