#pragma once

#include <optional>

#include "sim/program/impl/pass_writer.h"

namespace hdpsim {

/// The linear mixing of a layer over the ranks of its group (Recipe::mixing_exchange). What follows waits for the
/// states of other ranks.
void mixing_forward(PassWriter& writer);

/// From the gradient of the mixing's output to those of its inputs. Returns the exchange in a ring that brings those of
/// states, for which nothing waits yet, if there is one.
std::optional<Index> mixing_backward(PassWriter& writer);

}  // namespace hdpsim
