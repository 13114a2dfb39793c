#include <vector>

#include "tests/support/catch.h"
#include "tests/support/small_world.h"
#include "tests/unit/program/lowered.h"

namespace hdpsim {
namespace {

using test::backward_layers;
using test::count;
using test::forward_layers;
using test::one_head_model;
using test::plan_of;

constexpr std::int64_t ranks = 4;
constexpr std::int64_t tokens = 4096;
constexpr std::int64_t keys_of_rank = tokens / ranks * 2 * 64;  // numbers

MicroBatchProgram shared(LayerKernels layers) {
  const LoweringOptions options{
      .model = one_head_model(4),
      .mesh = {.hdp = ranks},
      .recipe = {.layers = layers, .dkv_bytes_per_element = 4, .key_exchange = KeyExchange::all_gather}};
  return Program(plan_of(ranks, 4, {{{0, 1, 2, 3}, tokens}}), options).micro_batch(MicroBatchId(0));
}

double pairs(const MicroBatchProgram& program, const Block& block) {
  double sum = 0;
  for (const Instruction& i : block.body) {
    if (i.opcode == Opcode::attention) sum += pairs_of(program.attention[i.work]);
  }
  return sum;
}

std::vector<SharingCollective> shares(const MicroBatchProgram& program, const Block& block, Stream stream) {
  std::vector<SharingCollective> found;
  for (const Instruction& i : block.body) {
    if (i.opcode == Opcode::share && i.stream == stream) found.push_back(program.shares[i.work]);
  }
  return found;
}

TEST_CASE("PyTorch attends to the gathered keys of each rank by themselves, and to no other pairs", "[program][cp]") {
  const MicroBatchProgram chunks = shared(LayerKernels::compiled);
  const MicroBatchProgram whole = shared(LayerKernels::fused);
  CHECK(count(forward_layers(chunks), Opcode::attention) == ranks);
  CHECK(count(backward_layers(chunks), Opcode::attention) == ranks);
  CHECK(count(forward_layers(whole), Opcode::attention) == 1);
  CHECK(pairs(chunks, forward_layers(chunks)) == Approx(pairs(whole, forward_layers(whole))));
  CHECK(pairs(chunks, backward_layers(chunks)) == Approx(pairs(whole, backward_layers(whole))));
}

TEST_CASE("keys are gathered beside a rank's own attention; their gradients go round in fp32, the last ones alone",
          "[program][cp]") {
  const MicroBatchProgram program = shared(LayerKernels::eager);
  const auto gathered = shares(program, forward_layers(program), Stream::comm);
  REQUIRE(gathered.size() == 1);
  CHECK(gathered[0].kind == CollectiveKind::all_gather);
  CHECK(gathered[0].bytes == Bytes(ranks * keys_of_rank * 2));
  CHECK(shares(program, forward_layers(program), Stream::compute).empty());

  const auto beside = shares(program, backward_layers(program), Stream::comm);
  REQUIRE(beside.size() == 2);
  CHECK(beside[0].bytes == gathered[0].bytes);
  CHECK(beside[1].bytes == Bytes(ranks * keys_of_rank * 4));
  CHECK(beside[1].gradients);
  const auto alone = shares(program, backward_layers(program), Stream::compute);
  REQUIRE(alone.size() == 1);
  CHECK(alone[0].bytes == Bytes(ranks * keys_of_rank * 4 / (ranks - 1)));  // of which a rank receives keys_of_rank
}

TEST_CASE("a compiled layer waits for all that its ranks exchange", "[program][cp]") {
  const MicroBatchProgram program = shared(LayerKernels::compiled);
  CHECK(shares(program, forward_layers(program), Stream::comm).empty());
  CHECK(shares(program, backward_layers(program), Stream::comm).empty());
  const auto alone = shares(program, backward_layers(program), Stream::compute);
  REQUIRE(alone.size() == 2);
  CHECK(alone[0].bytes == Bytes(ranks * keys_of_rank * 2));
  CHECK(alone[1].bytes == Bytes(ranks * keys_of_rank * 4 * ranks / (ranks - 1)));
}

}  // namespace
}  // namespace hdpsim
