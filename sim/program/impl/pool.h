#pragma once

#include "sim/program/impl/pass_writer.h"

namespace hdpsim {

// Collectives of parameters and gradients over the data-parallel group; of whole experts over the devices that hold the
// same ones, behind those of all else. The parameters of a layer are gathered while
// the previous layer computes, as soon as the layer before that has finished with its own. Gathers and reductions run
// one after another, because they use the same links.

/// Trained parameters of one device: of the embedding, and of the head with the final norm.
[[nodiscard]] DeviceParameters embedding_parameters(const PassWriter& writer);
[[nodiscard]] DeviceParameters head_parameters(const PassWriter& writer);
/// What is gathered of whichever of the two the pass has.
[[nodiscard]] PoolBytes gather_around(const PassWriter& writer);

/// See MicroBatchProgram.
[[nodiscard]] PoolBytes gather_bucket(const PassWriter& writer);
[[nodiscard]] PoolBytes reduce_bucket(const PassWriter& writer);
[[nodiscard]] HostShares host_copies(const PassWriter& writer);

/// Whether backward gathers the parameters again.
[[nodiscard]] bool gathers_again(const PassWriter& writer);
/// Adds a block of its own for an exposed gather.
void gather_first(PassWriter& writer, const PoolBytes& parameters);
/// Adds a gather of `parameters` that overlaps with the block.
Index gather(PassWriter& writer, const PoolBytes& parameters);
/// Adds the gather of the next layer's parameters: of the same kind but in the last iteration, then of the `next`
/// run's, if there is one.
Index gather_next(PassWriter& writer, const LayerRun* next);
/// Call last in a layer's block: its kernels wait for the gather of the previous iteration.
void wait_for_gather(PassWriter& writer, Index gather);
/// Adds the reduction of the gradients that the block has computed, if the pass reduces gradients: those of layers that
/// share a bucket are spread over their iterations, but for the last bucket, which follows the last layer.
void reduce(PassWriter& writer, const DeviceParameters& parameters);

}  // namespace hdpsim
