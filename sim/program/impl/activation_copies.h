#pragma once

#include <optional>

#include "sim/model/parameters.h"
#include "sim/program/impl/pass_writer.h"

namespace hdpsim {

/// How many of a pass's last layers, whose activations stay on the device (resident_layers), the open block has. Its
/// iterations are layers.
[[nodiscard]] std::uint32_t resident_here(const PassWriter& writer);

// Copies of a layer's kept activations to the host and back. Each function adds to the block of the layer's run, or
// changes its instructions. None does anything for a micro-batch without offload.

/// Call after a layer's forward: adds the copy to the host. The layer two further on waits for it, because it needs the
/// memory.
void offload(PassWriter& writer);

/// Call first in a layer's backward: adds the copy back to the device. Returns it; no value without offload.
std::optional<Index> prefetch(PassWriter& writer);
/// Call last in a layer's backward: the first instructions of the iteration, on every stream, wait for the copy. The
/// copy waits for the backward of the layer two iterations before, which frees the memory.
void wait_for_prefetch(PassWriter& writer, Index copy);

/// Sets the bytes of all copies in the program of a pass without experts to those of this micro-batch, which has no
/// spans that a rank holds alone. O(spans + instructions).
void copy_activations(const MicroBatch& micro_batch, const LoweringOptions& options, const ModelParts& parts,
                      MicroBatchProgram& program);

}  // namespace hdpsim
