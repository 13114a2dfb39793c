#pragma once

#include "sim/program/impl/pass_writer.h"

namespace hdpsim {

/// In the block of a layer's backward, before it: forward work for what backward needs and was not kept.
void compute_again(PassWriter& writer, const LayerRun& of);
/// Behind the layer's backward: what is computed again begins when the layer before it has ended.
void begin_behind_last_layer(PassWriter& writer);

}  // namespace hdpsim
