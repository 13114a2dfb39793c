#pragma once

#include "sim/program/impl/pass_writer.h"

namespace hdpsim {

inline constexpr std::uint32_t resident_layers = 2;  ///< Always on the device (ByteScale, section 4.1).

// Copies of a layer's kept activations to the host and back. Each writes into the block of the layer's run, or changes
// what is in it already; none does anything for a micro-batch that offloads nothing.

/// Behind a layer's forward. The layer two further on needs the memory that this one leaves.
void offload(PassWriter& writer, const LayerRun& of);

/// First in a layer's backward.
void prefetch(PassWriter& writer, const LayerRun& of);
/// Last in it: whatever begins the iteration waits, on every stream. The memory of a layer is free once its backward
/// has ended; the layer two further on may then come back.
void wait_for_prefetch(PassWriter& writer);

}  // namespace hdpsim
