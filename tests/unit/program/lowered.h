#pragma once

#include <algorithm>

#include "sim/program/program.h"
#include "tests/support/small_world.h"

namespace hdpsim::test {

/// The first micro-batch of a plan, lowered for a model of one head.
inline MicroBatchProgram lowered(const Plan& plan, std::int64_t layers, std::int64_t tp = 1) {
  const LoweringOptions options{one_head_model(layers), Mesh{.hdp = plan.ranks, .tp = tp, .pp = 1}};
  return Program(plan, options).micro_batch(MicroBatchId(0));
}

/// Of four layers, with activations computed again and offloaded.
inline MicroBatchProgram lowered(Plan plan, Recompute recompute, double offload = 0, std::int64_t tp = 1) {
  plan.micro_batches[0].offload = offload;
  LoweringOptions options{one_head_model(4), Mesh{.hdp = plan.ranks, .tp = tp}};
  options.recipe.recompute = recompute;
  return Program(plan, options).micro_batch(MicroBatchId(0));
}

inline std::size_t count(const Block& block, Opcode opcode) {
  return static_cast<std::size_t>(
      std::count_if(block.body.begin(), block.body.end(), [&](const Instruction& i) { return i.opcode == opcode; }));
}

inline const Block& forward_layers(const MicroBatchProgram& program) {
  return program.blocks[2];
}
inline const Block& backward_layers(const MicroBatchProgram& program) {
  return program.blocks[5];
}

}  // namespace hdpsim::test
