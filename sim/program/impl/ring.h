#pragma once

#include <optional>

#include "sim/program/impl/pass_writer.h"

namespace hdpsim {

/// Ring attention of one layer among the parties of the group (GroupSharing). Step k needs the keys and values that
/// exchange k brought. Exchange k writes the buffer that step k - 2 has read (two buffers alternate) and forwards what
/// exchange k - 1 brought; it is posted before the attention of step k - 1. `projected` computes queries, keys and
/// values; if empty, they exist already.
void forward_ring(PassWriter& writer, std::optional<Index> projected);

/// Like forward, with what SharingForm::passing() has in place of keys and values, and from exchange 2 on the message
/// also carries the gradients of it, one step behind. They need two more exchanges than the rest to reach their owner;
/// the first of these overlaps with the last step. Returns the last exchange, or no value for a ring of one rank.
/// `differentiated` computes the gradient of attention's output.
std::optional<Index> backward_ring(PassWriter& writer, Index differentiated);

}  // namespace hdpsim
