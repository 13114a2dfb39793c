#pragma once

#include "sim/model/parameters.h"
#include "sim/program/impl/pass_writer.h"

namespace hdpsim {

/// Writes a layer's forward.
void layer_forward(PassWriter& writer);
/// These write its parts: from the tokens of attention's norm to queries, keys and values; the attention core; from its
/// output to the residual stream; and from the tokens of the MLP's norm to the MLP's output, dense or with experts.
void qkv_forward(PassWriter& writer);
void attention_forward(PassWriter& writer);
void projection_forward(PassWriter& writer);
void mlp_forward(PassWriter& writer);

/// These write all parts of a layer, one after the other, without what ends an iteration; the forward must have tokens.
void parts_forward(PassWriter& writer);
void parts_backward(PassWriter& writer);

/// These write parts of its backward: of a dense MLP; from the gradient of the attention branch's output to that of
/// attention's output; and from those of queries, keys and values to that of its input.
void mlp_backward(PassWriter& writer);
void projection_backward(PassWriter& writer);
void qkv_backward(PassWriter& writer);

/// Writes a layer's backward with its recompute. Ends the iteration's kernels.
void layer_backward(PassWriter& writer);
/// Writes only the weight gradients of a layer.
void layer_weights(PassWriter& writer);

}  // namespace hdpsim
