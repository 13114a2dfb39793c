#pragma once

#include <cstdint>

#include "sim/engine/machine.h"
#include "sim/plan/work_model.h"
#include "sim/program/program.h"

namespace hdpsim {

/// The planners' coefficients in seconds of a mean stage, fitted to a few probe micro-batches that are lowered and
/// priced like those of a step:
///   - `capacity` / 2, `capacity` and 4 x `capacity` tokens per rank, each on one rank, in a ring of the first and the
///     last rank, and in one of the first two and the last rank, if there are so many;
///   - where ranks share without a ring, `capacity` and 4 x `capacity` tokens per rank in groups of neighbours within a
///     node, of whole nodes, and with one rank in the last of their nodes;
///   - one token on one rank;
///   - `capacity` and 4 x `capacity` tokens on one rank in sequences of a sixteenth of the capacity;
///   - `capacity` tokens on one rank with all activations offloaded and, without experts, with token-wise offload.
/// The other ranks of the probes' expert groups have equally many tokens per rank. If the first `ranks_per_node` ranks,
/// which share a node, are at least two, the hop between the first two is the hop within a node. O(HDP ranks).
/// Requires capacity >= 1.
[[nodiscard]] WorkModel work_model_of(const LoweringOptions& lowering, std::int64_t capacity, const Machine& machine,
                                      std::int64_t ranks_per_node);

}  // namespace hdpsim
