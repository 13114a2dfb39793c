#pragma once

#include "sim/program/impl/pass_writer.h"

namespace hdpsim {

// Forward work in the block of a layer's backward, for what backward needs and was not kept.

/// Before the MLP's backward, with all that it needs.
void compute_mlp_again(PassWriter& writer, const LayerRun& of);
/// Before attention's backward, what is not there yet.
void compute_attention_again(PassWriter& writer);
/// Last in the block: a ring that is run again, and first in the iteration, begins when the layer before it has ended.
void begin_ring_behind_last_layer(PassWriter& writer);

}  // namespace hdpsim
