#pragma once

#include <optional>

#include "sim/program/impl/pass_writer.h"

namespace hdpsim {

/// Attention of one layer to gathered keys and values, as in Transformer Engine's cp_comm_type all_gather: keys and
/// values are all-gathered one after the other, a kernel puts the parts of the zigzag in order, and one launch does the
/// rest. Attention of what ranks hold alone runs beside the gathering, which waits for `projected`; nothing else
/// overlaps.
void forward_gathered(PassWriter& writer, std::optional<Index> projected);

/// Gathers keys and values again; their gradients are reduce-scattered, or go back as they came, in the type in which a
/// ring sends them.
std::optional<Index> backward_gathered(PassWriter& writer, Index differentiated);

/// The same with a group-cast: the rank that needs most foreign keys receives them in an all-to-all in place of all
/// keys; the others are no faster.
void forward_cast(PassWriter& writer, std::optional<Index> projected);
std::optional<Index> backward_cast(PassWriter& writer, Index differentiated);

}  // namespace hdpsim
