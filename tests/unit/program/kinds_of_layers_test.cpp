#include <algorithm>
#include <numeric>

#include "sim/model/layers.h"
#include "sim/model/mixing.h"
#include "sim/program/program.h"
#include "sim/program/ring_launches.h"
#include "tests/support/catch.h"
#include "tests/support/small_world.h"
#include "tests/unit/program/lowered.h"

namespace hdpsim {
namespace {

using test::count;
using test::one_head_model;
using test::plan_of;

Transformer windowed(std::int64_t window) {
  Transformer model = one_head_model(4);
  model.window = window;
  return model;
}

Layer linear() {
  Layer layer = one_head_model(1);
  layer.heads = layer.kv_heads = layer.head_dim = 0;
  layer.linear = LinearMixing{.heads = 2, .key_heads = 1, .key_dim = 16, .value_dim = 32, .chunk = 64, .inputs = 256};
  return layer;
}

// Six layers; every third sees all tokens, the others are of another kind.
Transformer alternating(const Layer& other) {
  Transformer model = one_head_model(6);
  const Layer full = model;
  set_layers(model, {other, other, full, other, other, full});
  return model;
}

MicroBatchProgram lowered(const Plan& plan, const Transformer& model, Recipe recipe = {}) {
  const LoweringOptions options{model, Mesh{.hdp = plan.ranks}, recipe};
  return Program(plan, options).micro_batch(MicroBatchId(0));
}

// Blocks that attend, by their iterations.
std::vector<std::int64_t> loops(const MicroBatchProgram& program) {
  std::vector<std::int64_t> iterations;
  for (const Block& block : program.blocks) {
    if (count(block, Opcode::attention) > 0) iterations.push_back(block.iterations);
  }
  return iterations;
}

std::vector<std::size_t> group_of(std::size_t ranks) {
  std::vector<std::size_t> group(ranks);
  std::iota(group.begin(), group.end(), std::size_t{0});
  return group;
}

TEST_CASE("the layers of a kind are one loop, however often kinds alternate", "[kinds]") {
  const Plan plan = plan_of(1, 6, {{{0}, 4096}});
  CHECK(loops(lowered(plan, alternating(windowed(64)))) == std::vector<std::int64_t>{4, 2, 2, 4});
  Transformer deep = one_head_model(60);
  std::vector<Layer> layers;
  for (int i = 0; i < 60; ++i) layers.push_back(i % 2 == 0 ? Layer(windowed(64)) : Layer(one_head_model(1)));
  set_layers(deep, layers);
  CHECK(loops(lowered(plan_of(1, 60, {{{0}, 4096}}), deep)) == std::vector<std::int64_t>{30, 30, 30, 30});
}

TEST_CASE("ranks of a ring share the whole area of a window", "[kinds]") {
  for (const std::int64_t window : {16, 100, 512, 1000}) {
    for (const std::size_t ranks : {1, 2, 4, 8}) {
      for (const std::int64_t tokens : {1024, 4096, 10'000}) {
        CAPTURE(window, ranks, tokens);
        const Transformer model = windowed(window);
        const Plan plan = plan_of(static_cast<std::int64_t>(ranks), 4, {{group_of(ranks), tokens}});
        const RingAttention ring = ring_attention(
            plan.micro_batches[0], model, 1, {.parties = std::ssize(plan.micro_batches[0].group)}, Direction::forward);
        const double shared = static_cast<double>(ranks) * (pairs_of(ring.own) + pairs_of(ring.step));
        CHECK(shared == Approx(attention_area(model, tokens)).epsilon(0.02));
      }
    }
  }
}

TEST_CASE("a rank of a windowed ring receives the tokens before its two parts, once", "[kinds]") {
  const std::int64_t tokens = 8192;
  const Plan plan = plan_of(4, 4, {{group_of(4), tokens}});
  const MicroBatchProgram program = lowered(plan, windowed(129));
  for (const Block& block : program.blocks) {
    const bool is_forward = block.direction == Direction::forward;
    if (count(block, Opcode::attention) == 0) continue;
    CHECK(count(block, Opcode::exchange) == (is_forward ? 1 : 2));  // their gradients return
    CHECK(block.rings.size() == 1);
    for (const Instruction& i : block.body) {
      if (i.opcode == Opcode::exchange) CHECK(program.bytes[i.work] == kv_bytes(one_head_model(1), 2 * 128, 1));
    }
  }
  // Where the window holds all tokens, keys and values pass by as they do without one.
  const MicroBatchProgram wide = lowered(plan, windowed(tokens));
  CHECK(std::any_of(wide.blocks.begin(), wide.blocks.end(),
                    [](const Block& block) { return count(block, Opcode::exchange) == 3; }));
}

TEST_CASE("chunks that parts do not cut need nothing of other ranks", "[kinds]") {
  Transformer model = one_head_model(4);
  model.attention_chunk = 1024;
  const Plan plan = plan_of(4, 4, {{group_of(4), 8192}});  // eight parts of 1,024
  for (const Block& block : lowered(plan, model).blocks) CHECK(count(block, Opcode::exchange) == 0);
  model.attention_chunk = 1500;
  const RingAttention ring = ring_attention(plan.micro_batches[0], model, 1,
                                            {.parties = std::ssize(plan.micro_batches[0].group)}, Direction::forward);
  CHECK(ring.halo == 1500);
  CHECK(4 * (pairs_of(ring.own) + pairs_of(ring.step)) == Approx(attention_area(model, 8192)).epsilon(0.01));
}

TEST_CASE("linear layers pass the states of all other parts, and nothing that grows with the tokens", "[kinds]") {
  const Transformer model = alternating(linear());
  const auto states = [&](std::int64_t tokens) {
    const MicroBatchProgram program =
        lowered(plan_of(4, 6, {{group_of(4), tokens}}), model, {.mixing_exchange = MixingExchange::states});
    Bytes bytes;
    for (const Block& block : program.blocks) {
      if (count(block, Opcode::attention) > 0 || block.iterations != 4) continue;
      for (const Instruction& i : block.body) bytes += i.opcode == Opcode::exchange ? program.bytes[i.work] : Bytes{};
    }
    return bytes;
  };
  const Bytes state = Bytes(2 * 16 * 32 * 4);
  CHECK(states(4096) == state * (2 * (8 - 2)));  // forward, and their gradients backward
  CHECK(states(8192) == states(4096));
}

// What reaches a rank for its linear layers.
Bytes moved_for_mixing(const Plan& plan, MixingExchange exchange) {
  const MicroBatchProgram program = lowered(plan, alternating(linear()), {.mixing_exchange = exchange});
  Bytes bytes;
  for (const Block& block : program.blocks) {
    if (count(block, Opcode::attention) > 0 || block.iterations != 4) continue;
    for (const Instruction& i : block.body) {
      if (i.opcode == Opcode::exchange) bytes += program.bytes[i.work];
      if (i.opcode != Opcode::share) continue;
      const SharingCollective& op = program.shares[i.work];
      CHECK((op.tensor == SharedTensor::mixed && op.party(program.sharing) == 2));  // as many as linear() has heads
      bytes += op.bytes / 2;
    }
  }
  return bytes;
}

TEST_CASE("ranks that mix many short sequences trade heads, those of a long one pass states", "[kinds]") {
  using enum MixingExchange;
  Plan plan = plan_of(4, 6, {{group_of(4), 4096}});
  CHECK(moved_for_mixing(plan, fewest_bytes) == moved_for_mixing(plan, states));
  CHECK(moved_for_mixing(plan, states) < moved_for_mixing(plan, heads));
  plan.micro_batches[0].spans.assign(64, {SequenceId(0), 0, 64});
  CHECK(moved_for_mixing(plan, fewest_bytes) == moved_for_mixing(plan, heads));
  CHECK(moved_for_mixing(plan, heads) < moved_for_mixing(plan, states));
  // Two parties of two ranks: of every sequence two states, of half of the heads; and the trade there and back.
  const Bytes state = Bytes(2 * 16 * 32 * 4);
  const LinearMixing mixing = *linear().linear;
  const Bytes traded = Bytes(1024 * (mixing.inputs + mixing.heads * mixing.value_dim) * 2);
  CHECK(moved_for_mixing(plan, heads) == (state * (64 * 2) / 2 + traded / 2) * 2);
}

TEST_CASE("the two layers that stay on the device are the last of the pass, of whatever kind", "[kinds]") {
  Plan plan = plan_of(1, 6, {{{0}, 4096}});
  plan.micro_batches[0].offload = 1;
  std::int64_t copies = 0;
  std::int64_t fetches = 0;
  for (const Block& block : lowered(plan, alternating(windowed(64))).blocks) {
    for (std::int64_t n = 0; n < block.iterations; ++n) {
      for (const Instruction& i : block.body) {
        if (!i.active(n, block.iterations)) continue;
        copies += i.opcode == Opcode::offload ? 1 : 0;
        fetches += i.opcode == Opcode::prefetch ? 1 : 0;
      }
    }
  }
  CHECK(copies == 6 - 2);
  CHECK(fetches == 6 - 2);
}

TEST_CASE("parameters of every layer are gathered once in each direction, and their gradients reduced", "[kinds]") {
  const Transformer model = alternating(linear());
  const MicroBatchProgram program = lowered(plan_of(2, 6, {{{0}, 4096}}), model, {.zero = 3});
  Bytes gathered;
  Bytes reduced;
  for (const Block& block : program.blocks) {
    for (std::int64_t n = 0; n < block.iterations; ++n) {
      for (const Instruction& i : block.body) {
        if (!i.active(n, block.iterations)) continue;
        if (i.opcode == Opcode::gather) gathered += program.pools[i.work].common;
        if (i.opcode == Opcode::reduce) reduced += program.pools[i.work].common;
      }
    }
  }
  const Bytes layers(2 * parameters_of_layers(model, 0, 6));
  const Bytes others(2 * (embedding_parameter_count(model) + final_norm_parameters(model)));
  CHECK(gathered == layers * 2 + others);
  CHECK(reduced == layers + others);
}

TEST_CASE("a layer of one branch computes that branch alone", "[kinds]") {
  Layer attention = one_head_model(1);
  attention.ffn_hidden = 0;
  Layer mlp = one_head_model(1);
  mlp.heads = mlp.kv_heads = mlp.head_dim = 0;
  attention.norms = mlp.norms = 1;
  Transformer model = one_head_model(2);
  set_layers(model, {attention, mlp});
  const MicroBatchProgram program = lowered(plan_of(1, 2, {{{0}, 1000}}), model);
  std::size_t products = 0;
  for (const Block& block : program.blocks) {
    if (block.direction == Direction::backward) continue;
    for (const Instruction& i : block.body) {
      if (i.opcode == Opcode::dense) products += program.dense[i.work].gemms.size();
    }
  }
  CHECK(products == 2 + 2 + 1);  // QKV and output; the MLP's two; the head
  CHECK(loops(program).size() == 2);
}

}  // namespace
}  // namespace hdpsim
