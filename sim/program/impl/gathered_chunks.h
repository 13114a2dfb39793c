#pragma once

#include <optional>

#include "sim/program/impl/pass_writer.h"

namespace hdpsim {

/// Attention of one layer in PyTorch's context parallelism (torch/distributed/tensor/experimental/_attention.py,
/// _templated_ring_attention, rotation by all-gather), which layers of PyTorch take for gathered keys. A rank gathers
/// all keys and values while it attends to its own, and then attends to those of the other ranks one by one, in the
/// halves of a balanced ring. Operators in fp32 merge each output into the result so far, and slices that a step does
/// not touch are copied with the others.
///
/// In backward the gradients of keys and values are summed in fp32 on their way around a ring: a step's message travels
/// while the next step computes, the last one alone. In a compiled layer nothing overlaps: a traced collective is
/// waited for where it is written (torch/distributed/_functional_collectives.py, _maybe_wrap_tensor).

/// Whether a micro-batch's layer is one of these: under layers of PyTorch, with whole attention and equal ranks.
[[nodiscard]] bool attends_by_chunks(PassWriter& writer);

void forward_by_chunks(PassWriter& writer, std::optional<Index> projected);
std::optional<Index> backward_by_chunks(PassWriter& writer, Index differentiated);

}  // namespace hdpsim
