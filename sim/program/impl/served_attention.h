#pragma once

#include "sim/program/impl/pass_writer.h"

namespace hdpsim {

/// A layer of a micro-batch whose ranks are attention servers for each other (TokenCut::served), as in DistCA (Zhuang
/// et al. 2025). Its two halves alternate, so that the messages of one travel beside kernels of the other
/// ("ping-pong"):
///
///     compute  linear A | linear B of the layer before, linear B | attention A | attention B | linear A
///     comm              | tasks A                                | tasks B     | results A   | results B
///
/// The last linear layers of half B stand in the next iteration, before that layer's first ones. In the first iteration
/// they stand for those of the last layer. Tasks are queries, keys and values, results are attention's output; backward
/// has the output and its gradient besides, and the gradients of queries, keys and values for results. The layer must
/// have full attention and a dense MLP, and recompute nothing.
void served_forward(PassWriter& writer);
/// Does not end the iteration's kernels.
void served_backward(PassWriter& writer);

}  // namespace hdpsim
