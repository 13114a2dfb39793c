#pragma once

#include <optional>

#include "sim/program/impl/pass_writer.h"

namespace hdpsim {

/// The attention core of a layer over the ranks of its group, as they share it (GroupSharing). `projected` computes
/// queries, keys and values; if empty, they exist already.
void core_forward(PassWriter& writer, std::optional<Index> projected);

/// From the gradient of attention's output, which `differentiated` computes, to those of queries, keys and values.
/// Returns the exchange that brings the last of them, if one does.
std::optional<Index> core_backward(PassWriter& writer, Index differentiated);

}  // namespace hdpsim
