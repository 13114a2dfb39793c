#include "tests/support/catch.h"
#include "tests/support/small_world.h"
#include "tests/unit/program/lowered.h"

namespace hdpsim {
namespace {

using test::backward_layers;
using test::forward_layers;
using test::one_head_model;
using test::plan_of;

constexpr std::int64_t torch_ranks = 4;
constexpr std::int64_t torch_tokens = 4096;

MicroBatchProgram torch_shared(LayerKernels layers, KeyExchange exchange, std::int64_t heads) {
  Transformer model = one_head_model(4);
  model.heads = model.kv_heads = heads;
  const LoweringOptions options{
      .model = model, .mesh = {.hdp = torch_ranks}, .recipe = {.layers = layers, .key_exchange = exchange}};
  return Program(plan_of(torch_ranks, 4, {{{0, 1, 2, 3}, torch_tokens}}), options).micro_batch(MicroBatchId(0));
}

// Bytes that kernels between the launches of attention read and write.
std::int64_t merge_traffic(const MicroBatchProgram& program, const Block& block) {
  std::int64_t sum = 0;
  for (const Instruction& i : block.body) {
    if (i.opcode == Opcode::merge) sum += program.memory_bound[i.work].traffic.count();
  }
  return sum;
}

TEST_CASE("a ring of PyTorch sums outputs, and gradients of queries, keys and values, in fp32", "[program][cp]") {
  const MicroBatchProgram program = torch_shared(LayerKernels::eager, KeyExchange::ring, 1);
  const std::int64_t queries = torch_tokens / torch_ranks * 64;  // numbers, as many as of keys and of values
  const std::int64_t steps = torch_ranks - 1;
  // A merge reads the sum and a step's output for 3/4 of the queries and writes the sum; half of the steps copy half of
  // it out and back. Casts of the first output and of the result: 2 + 4 bytes each.
  CHECK(merge_traffic(program, forward_layers(program)) ==
        steps * (queries * 3 / 4 * (4 + 2 + 4) + queries / 4 * 2 * 4) + queries * 2 * 6);
  CHECK(merge_traffic(program, backward_layers(program)) ==
        steps * (3 * queries * 3 / 4 * (4 + 2 + 4)) + 3 * queries * 2 * 6);
  // Transformer Engine's ring has the merges alone.
  const MicroBatchProgram fused = torch_shared(LayerKernels::fused, KeyExchange::ring, 1);
  CHECK(merge_traffic(fused, forward_layers(fused)) == steps * (queries * 3 / 4 * (4 + 2 + 4)));
  CHECK(merge_traffic(fused, backward_layers(fused)) == 0);
}

TEST_CASE("PyTorch copies what ranks trade, and twice what returns to all heads", "[program][cp]") {
  const MicroBatchProgram program = torch_shared(LayerKernels::eager, KeyExchange::all_to_all, torch_ranks);
  const std::int64_t tensor =
      torch_tokens / torch_ranks * torch_ranks * 64 * 2;  // bytes of queries, of keys, of values and of outputs
  // Queries, keys and values once and outputs twice; backward the gradients of outputs once and the others twice.
  CHECK(merge_traffic(program, forward_layers(program)) == (3 * 1 + 2) * 2 * tensor);
  CHECK(merge_traffic(program, backward_layers(program)) == (1 + 3 * 2) * 2 * tensor);
  const MicroBatchProgram fused = torch_shared(LayerKernels::fused, KeyExchange::all_to_all, torch_ranks);
  CHECK(merge_traffic(fused, forward_layers(fused)) == 0);
}

}  // namespace
}  // namespace hdpsim
