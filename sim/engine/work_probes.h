#pragma once

#include <cstdint>

#include "sim/engine/machine.h"
#include "sim/plan/work_model.h"
#include "sim/program/program.h"

namespace hdpsim {

/// The planners' coefficients, read off a few micro-batches that are lowered and priced as those of a step are: of half
/// of `capacity`, of `capacity` and of four times as many tokens a rank, each on one rank alone and in a ring of two over
/// the widest hop of the pool, of one token, and with activations that leave the device. Seconds of a mean stage.
/// Ranks of an expert group have as many tokens each. Of the `ranks_per_node` first ranks, which share a node, the hops
/// are those within nodes. Requires capacity >= 1. O(ranks of the pool).
[[nodiscard]] WorkModel work_model_of(const LoweringOptions& lowering, std::int64_t capacity, const Machine& machine,
                                      std::int64_t ranks_per_node);

}  // namespace hdpsim
