#pragma once

#include <optional>

#include "sim/program/impl/pass_writer.h"

namespace hdpsim {

/// Attention of one layer between all-to-alls within a party (GroupSharing): the queries, keys and values of a rank's
/// tokens go to the ranks that have their heads, one tensor after the other, and the outputs come back; in backward the
/// gradients of the outputs go, and those of queries, keys and values come back (Transformer Engine 2.8 or later).
/// Parties of one rank trade nothing. A ring joins the parties.
void forward_traded(PassWriter& writer, std::optional<Index> projected);
std::optional<Index> backward_traded(PassWriter& writer, Index differentiated);

}  // namespace hdpsim
