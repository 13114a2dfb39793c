#pragma once

#include "sim/program/impl/pass_writer.h"

namespace hdpsim {

/// All-to-alls within a party (GroupSharing): the queries, keys and values of a rank's tokens go to the ranks that have
/// their heads, one tensor after the other, and the outputs come back; in backward the gradients of the outputs go, and
/// those of queries, keys and values come back (Transformer Engine 2.8 or later). Without parties of several ranks they
/// do nothing.
/// `gradients`: those of the tensors go, in place of the tensors themselves.
void trade_inputs(PassWriter& writer, bool gradients);
void trade_outputs(PassWriter& writer, bool gradients);

}  // namespace hdpsim
