#pragma once

#include <optional>

#include "sim/program/impl/pass_writer.h"

namespace hdpsim {

/// Ring attention of one layer. Step k needs the keys and values that exchange k brought. Exchange k writes the buffer
/// that step k - 2 has read (two buffers alternate) and forwards what exchange k - 1 brought; it is posted before the
/// attention of step k - 1. `projected` made queries, keys and values; without it they are there already.
void forward_ring(PassWriter& writer, std::optional<Index> projected);

/// As forward, but from step 2 on the message also carries the gradients of the keys and values, one step behind; after
/// the last step they need two more hops to reach their owner, the first of them beside the last step. The last of the
/// exchanges; nothing for a ring of one rank. `differentiated` made the gradient of attention's output.
std::optional<Index> backward_ring(PassWriter& writer, Index differentiated);

}  // namespace hdpsim
