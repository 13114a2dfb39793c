#pragma once

#include "sim/program/impl/pass_writer.h"

namespace hdpsim {

// Parameters and gradients over the pool. Those of a layer are gathered while the layer before computes, as soon as the
// one before that is done with its own; one after the other with the reductions, which take the same links.

/// Parameters of one device: of a layer, of what stands before or behind the layers, or of both.
[[nodiscard]] std::int64_t layer_parameters(const PassWriter& writer);
[[nodiscard]] std::int64_t embedding_parameters(const PassWriter& writer);
[[nodiscard]] std::int64_t head_parameters(const PassWriter& writer);
[[nodiscard]] std::int64_t parameters_around(const PassWriter& writer);

/// Backward finds no parameters: they are gathered again.
[[nodiscard]] bool gathers_again(const PassWriter& writer);
/// A block of its own for the gather that nothing can hide.
void gather_first(PassWriter& writer, std::int64_t parameters);
/// Of so many parameters, beside the block.
void gather(PassWriter& writer, std::int64_t parameters);
/// Of the layer behind this one.
void gather_next(PassWriter& writer);
/// Last in a layer's block: its kernels wait for the gather one iteration back.
void wait_for_gather(PassWriter& writer);
/// Of the gradients that the block has computed, if the pass reduces any.
void reduce(PassWriter& writer, std::int64_t parameters);

}  // namespace hdpsim
