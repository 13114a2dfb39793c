#include <algorithm>
#include <numeric>
#include <vector>

#include "sim/model/kept_tensors.h"
#include "sim/model/layers.h"
#include "sim/model/mixing.h"
#include "sim/model/shares.h"
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

constexpr std::int64_t chosen = 512;

// Four layers whose queries choose 512 keys; `heads` of the indexer score them.
Transformer indexed(std::int64_t heads = 4) {
  Transformer model = one_head_model(4);
  model.latent = LatentAttention{.query_rank = 64, .kv_rank = 96, .rotated = 32};
  model.indexer = KeyIndexer{.heads = heads, .head_dim = heads > 0 ? 16 : 0, .keys = chosen};
  return model;
}

Plan plan_on(std::size_t ranks, std::int64_t tokens) {
  std::vector<std::size_t> group(ranks);
  std::iota(group.begin(), group.end(), std::size_t{0});
  return plan_of(static_cast<std::int64_t>(ranks), 4, {{group, tokens}});
}

RingAttention attention_of(const Plan& plan, const Transformer& model, Direction direction = Direction::forward) {
  return gathered_attention(plan.micro_batches[0], model, 1, direction);
}

MicroBatchProgram gathering(const Plan& plan, const Transformer& model) {
  const LoweringOptions options{
      .model = model, .mesh = Mesh{.hdp = plan.ranks}, .recipe = {.key_exchange = KeyExchange::all_gather}};
  return Program(plan, options).micro_batch(MicroBatchId(0));
}

TEST_CASE("ranks share the pairs that are chosen, and score all pairs before", "[indexer]") {
  for (const std::size_t ranks : {1, 2, 4, 8}) {
    for (const std::int64_t tokens : {256, 4096, 10'000}) {
      CAPTURE(ranks, tokens);
      const RingAttention attention = attention_of(plan_on(ranks, tokens), indexed());
      REQUIRE(attention.scores.has_value());
      const auto share = static_cast<double>(ranks);
      CHECK(share * pairs_of(attention.own) == Approx(attention_area(indexed(), tokens)).epsilon(0.02));
      CHECK(share * pairs_of(*attention.scores) == Approx(causal_pairs(tokens)).epsilon(0.02));
      CHECK(attention.step.blocks.empty());
    }
  }
}

TEST_CASE("the core has latents for keys and values of all heads, and scores have no values", "[indexer]") {
  const RingAttention attention = attention_of(plan_on(1, 4096), indexed());
  CHECK(attention.own.kv_heads == 1);
  CHECK(attention.own.head_dim == (96 + 32 + 96) / 2);
  // An attention of width d / 2 has as many FLOPs as products of d columns alone.
  CHECK(attention.scores->heads == 4);
  CHECK(attention.scores->head_dim == 16 / 2);
  CHECK(flops_of(*attention.scores).count() == 2.0 * 4 * 16 * pairs_of(*attention.scores));
}

TEST_CASE("backward has the scores of chosen keys with two gradients, and those of attention, from which they learn",
          "[indexer]") {
  Transformer model = indexed();
  model.indexer->head_dim = 20;  // of which six tenths are whole columns
  const RingAttention attention = attention_of(plan_on(4, 8192), model, Direction::backward);
  REQUIRE(attention.scores.has_value());
  CHECK(pairs_of(*attention.scores) == pairs_of(attention.own));
  CHECK(flops_of(*attention.scores).count() == Approx(3 * 2.0 * 4 * 20 * pairs_of(attention.own)));
  REQUIRE(attention.target.has_value());
  CHECK(flops_of(*attention.target).count() == 2.0 * (96 + 32) * pairs_of(attention.own));
}

TEST_CASE("forward scores keys, chooses them from scores in fp32, and attends; backward chooses nothing", "[indexer]") {
  const std::int64_t tokens = 4096;
  const MicroBatchProgram program = gathering(plan_on(1, tokens), indexed());
  for (const Block& block : program.blocks) {
    if (count(block, Opcode::attention) == 0) continue;
    const bool is_forward = block.direction == Direction::forward;
    CHECK(count(block, Opcode::attention) == (is_forward ? 2 : 3));
    CHECK(count(block, Opcode::merge) == (is_forward ? 1 : 0));
    for (const Instruction& i : block.body) {
      if (i.opcode != Opcode::merge) continue;
      CHECK(program.memory_bound[i.work].traffic == Bytes(2 * fp32_bytes * causal_area(tokens)));
    }
  }
}

TEST_CASE("a layer that takes the choice of another scores nothing, and gathers latents alone", "[indexer]") {
  const Plan plan = plan_on(4, 8192);
  CHECK_FALSE(attention_of(plan, indexed(0)).scores.has_value());
  CHECK(kv_bytes(indexed(0), 8192, 1) == Bytes(8192 * 2 * (96 + 32)));
  CHECK(kv_bytes(indexed(), 8192, 1) == Bytes(8192 * 2 * (96 + 32 + 16)));
  const MicroBatchProgram program = gathering(plan, indexed(0));
  Bytes gathered;
  for (const SharingCollective& op : program.shares) {
    if (op.kind == CollectiveKind::all_gather) gathered = std::max(gathered, op.bytes);
  }
  CHECK(gathered == kv_bytes(indexed(0), 8192, 1) / 2);  // keys, then values
}

TEST_CASE("of a layer whose choice others take, the choice is kept where all else is computed again", "[indexer]") {
  const auto kept = [](bool is_shared, Recompute recompute) {
    Transformer model = indexed();
    model.indexer->is_shared = is_shared;
    const auto tensors = kept_tensors(model, {.recompute = recompute});
    return std::count_if(tensors.begin(), tensors.end(), [](const KeptTensor& tensor) {
      return tensor.name == "chosen keys" && tensor.bytes_per_token == 4 * chosen && !tensor.cut;
    });
  };
  CHECK(kept(false, {}) == 1);
  CHECK(kept(false, Recompute::full) == 0);
  CHECK(kept(true, Recompute::full) == 1);
  CHECK(kept(false, Recompute::selective) == 0);  // the core scores again
}

TEST_CASE("a stage that begins with a layer that takes a choice receives it with the hidden states", "[indexer]") {
  Transformer model = indexed();
  Layer sharing = model;
  sharing.indexer = KeyIndexer{.heads = 0, .head_dim = 0, .keys = chosen};
  const Layer scoring = model;
  const auto message = [&](const std::vector<Layer>& layers) {
    set_layers(model, layers);
    const Plan plan = plan_on(1, 4096);
    const LoweringOptions options{.model = model, .mesh = Mesh{.pp = 2}};
    const Program program(plan, options);
    std::vector<Bytes> sent;
    for (std::size_t id = 0; id < program.pipeline().passes(); ++id) sent.push_back(program.message(PassId(id)));
    return *std::max_element(sent.begin(), sent.end());
  };
  const Bytes hidden = hidden_bytes(model, 4096);
  CHECK(message({scoring, sharing, scoring, sharing}) == hidden);
  CHECK(message({scoring, sharing, sharing, sharing}) == hidden + Bytes(4096 * 4 * chosen));
}

TEST_CASE("a ring brings the keys too late to choose among them", "[indexer]") {
  const Plan plan = plan_on(4, 8192);
  CHECK_THROWS_WITH(ring_attention(plan.micro_batches[0], indexed(), 1, {.parties = 4}, Direction::forward),
                    Catch::Matchers::Contains("4 ranks choose keys and gather none"));
}

}  // namespace
}  // namespace hdpsim
