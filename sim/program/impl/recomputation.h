#pragma once

#include "sim/model/parameters.h"
#include "sim/program/impl/pass_writer.h"

namespace hdpsim {

// Recompute: forward work in the block of a layer's backward, for activations that backward needs and that were not
// kept.

/// Call before the MLP's backward: recomputes everything that it needs.
void compute_mlp_again(PassWriter& writer);
/// Call before attention's backward: recomputes what compute_mlp_again() has not.
void compute_attention_again(PassWriter& writer);
/// Call last in the block: a recomputed ring that is first in the iteration begins when the previous layer has ended.
void begin_ring_behind_last_layer(PassWriter& writer);

}  // namespace hdpsim
