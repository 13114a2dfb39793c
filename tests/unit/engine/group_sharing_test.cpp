// How a group shares the attention of its micro-batches: who sends how much to whom, and what that costs.

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "sim/engine/simulator.h"
#include "sim/engine/world.h"
#include "sim/model/group_sharing.h"
#include "sim/profile/profile_file.h"
#include "tests/support/catch.h"
#include "tests/support/small_world.h"

namespace hdpsim {
namespace {

constexpr std::int64_t group_ranks = 8;
constexpr std::int64_t shared_tokens = 131'072;  // of the group

// The heads of Llama-3 8B in one layer.
Transformer eight_billion() {
  Transformer model;
  model.name = "8b";
  model.layers = 1;
  model.hidden = 4096;
  model.heads = 32;
  model.kv_heads = 8;
  model.head_dim = 128;
  model.ffn_hidden = 14336;
  model.vocabulary = 1000;
  return model;
}

std::vector<std::size_t> first_ranks(std::int64_t count) {
  std::vector<std::size_t> group(static_cast<std::size_t>(count));
  std::iota(group.begin(), group.end(), std::size_t{0});
  return group;
}

LoweringOptions lowering_of(const Recipe& recipe) {
  return {eight_billion(), Mesh{.hdp = group_ranks}, recipe};
}

// What a rank receives in the forward, and in the backward, of one layer.
std::map<Direction, std::int64_t> received_keys(const Recipe& recipe) {
  const Plan plan = test::plan_of(group_ranks, 1, {{first_ranks(group_ranks), shared_tokens}});
  const MicroBatchProgram program = Program(plan, lowering_of(recipe)).micro_batch(MicroBatchId(0));
  std::map<Direction, std::int64_t> bytes;
  for (const Block& block : program.blocks) {
    for (const Instruction& i : block.body) {
      if (i.opcode == Opcode::exchange) bytes[block.direction] += program.bytes[i.work].count();
      if (i.opcode != Opcode::share) continue;
      const SharingCollective& op = program.shares[i.work];
      const std::int64_t parts = op.party(program.sharing);
      bytes[block.direction] += op.bytes.count() / parts * (parts - 1);
    }
  }
  return bytes;
}

constexpr std::int64_t kv_of_rank = 2 * 8 * 128 * 2 * (shared_tokens / group_ranks);   // 67.1 MB
constexpr std::int64_t traded_of_rank = 80 * 128 * 2 * (shared_tokens / group_ranks);  // q, k, v and o: 335.5 MB

TEST_CASE("heads are traded among as many ranks as divide the group and the heads of a device", "[sharing]") {
  const Transformer model = eight_billion();
  const Recipe trades{.key_exchange = KeyExchange::all_to_all};
  const auto inner = [&](std::int64_t tp, std::int64_t count, std::int64_t most = 0) {
    Recipe recipe = trades;
    recipe.a2a_ranks = most;
    const GroupSharing sharing = group_sharing(model, recipe, tp, count);
    CHECK(sharing.ranks() == count);
    return sharing.inner;
  };
  CHECK(inner(1, 8) == 8);
  CHECK(inner(1, 64) == 8);
  CHECK(inner(1, 12) == 4);
  CHECK(inner(1, 7) == 1);
  CHECK(inner(2, 8) == 4);
  CHECK(inner(8, 8) == 1);
  CHECK(inner(1, 8, 4) == 4);
  CHECK(inner(1, 8, 3) == 2);
  Transformer hybrid = model;  // every second layer has other heads
  Layer other = model;
  other.kv_heads = 4;
  hybrid.others = {other};
  CHECK(group_sharing(hybrid, trades, 1, 8).inner == 4);
}

TEST_CASE("the ranks of a party hold neighbouring places, and rings join equal places", "[sharing]") {
  const GroupSharing sharing{.inner = 4, .parties = 3};
  for (std::size_t rank = 0; rank < 12; ++rank) {
    CHECK(sharing.next(rank) % 4 == rank % 4);
    CHECK(sharing.next(rank) / 4 == (rank / 4 + 1) % 3);
    CHECK(sharing.before(sharing.next(rank)) == rank);
  }
}

TEST_CASE("a rank receives the keys and values of all others, or its heads of all tokens", "[sharing]") {
  CHECK(received_keys({.key_exchange = KeyExchange::ring})[Direction::forward] == (group_ranks - 1) * kv_of_rank);
  CHECK(received_keys({.key_exchange = KeyExchange::all_gather})[Direction::forward] == (group_ranks - 1) * kv_of_rank);
  CHECK(received_keys({.key_exchange = KeyExchange::all_to_all})[Direction::forward] == traded_of_rank / 8 * 7);
  CHECK(received_keys({.key_exchange = KeyExchange::all_to_all, .a2a_ranks = 4})[Direction::forward] ==
        traded_of_rank / 4 * 3 + kv_of_rank);
}

TEST_CASE("in backward keys and values come again and their gradients return; traded gradients come once",
          "[sharing]") {
  CHECK(received_keys({.key_exchange = KeyExchange::all_gather})[Direction::backward] ==
        2 * (group_ranks - 1) * kv_of_rank);
  CHECK(received_keys({.key_exchange = KeyExchange::all_to_all})[Direction::backward] == traded_of_rank / 8 * 7);
}

// The message of a step of the backward ring that is neither the first nor one of the last.
std::int64_t backward_message(const Transformer& model, const Recipe& recipe) {
  const Plan plan = test::plan_of(group_ranks, 1, {{first_ranks(group_ranks), shared_tokens}});
  const MicroBatchProgram program =
      Program(plan, {model, Mesh{.hdp = group_ranks}, recipe}).micro_batch(MicroBatchId(0));
  for (const Block& block : program.blocks) {
    for (const Instruction& i : block.body) {
      const bool is_it = block.direction == Direction::backward && i.opcode == Opcode::exchange && i.ring_step == 2;
      if (is_it) return program.bytes[i.work].count();
    }
  }
  return 0;
}

// BurstEngine (Sun et al. 2025, arXiv 2509.19836): with h heads of width d, 3 h d + 2 h numbers of a token, of which
// the 2 h are fp32 here, in place of 4 h d.
TEST_CASE("where queries pass around the backward ring, a message has 3 h d + 2 h numbers of a token and not 4 h d",
          "[sharing]") {
  const Recipe keys{.key_exchange = KeyExchange::ring};
  const Recipe queries{.key_exchange = KeyExchange::query_ring};
  const std::int64_t tokens = shared_tokens / group_ranks;
  Transformer model = eight_billion();
  const std::int64_t width = model.heads * model.head_dim;
  const std::int64_t passing = tokens * (3 * width * 2 + 2 * model.heads * 4);
  model.kv_heads = model.heads;
  CHECK(backward_message(model, keys) == tokens * 4 * width * 2);
  CHECK(backward_message(model, queries) == passing);  // 24.2 % fewer
  // Four heads share a key and a value in the model: its keys, values and gradients are a fourth.
  CHECK(backward_message(eight_billion(), keys) == tokens * width * 2);
  CHECK(backward_message(eight_billion(), queries) == passing);
  // Seven hops bring what passes, eight its gradients, which go home; forward is the ring's.
  std::map<Direction, std::int64_t> received = received_keys(queries);
  CHECK(received[Direction::forward] == (group_ranks - 1) * kv_of_rank);
  CHECK(received[Direction::backward] ==
        (group_ranks - 1) * (passing - tokens * width * 2) + group_ranks * tokens * width * 2);
  // Gradients of queries travel in the type in which those of keys do.
  Recipe exact = queries;
  exact.dkv_bytes_per_element = 4;
  CHECK(backward_message(model, exact) == passing + tokens * width * 2);
}

TEST_CASE("layers of a window exchange the same halos where queries pass", "[sharing]") {
  Transformer model = eight_billion();
  model.window = 1024;
  const auto messages = [&](KeyExchange exchange) {
    const Plan plan = test::plan_of(group_ranks, 1, {{first_ranks(group_ranks), shared_tokens}});
    const LoweringOptions lowering{model, Mesh{.hdp = group_ranks}, {.key_exchange = exchange}};
    return Program(plan, lowering).micro_batch(MicroBatchId(0)).sent_around_ring();
  };
  CHECK(messages(KeyExchange::query_ring) == messages(KeyExchange::ring));
}

// The tensors of the collectives of a layer, in order: forward, then backward.
std::vector<std::pair<SharedTensor, bool>> tensors_moved(const Recipe& recipe) {
  const Plan plan = test::plan_of(group_ranks, 1, {{first_ranks(group_ranks), shared_tokens}});
  const MicroBatchProgram program = Program(plan, lowering_of(recipe)).micro_batch(MicroBatchId(0));
  std::vector<std::pair<SharedTensor, bool>> tensors;
  for (const Block& block : program.blocks) {
    for (const Instruction& i : block.body) {
      if (i.opcode != Opcode::share) continue;
      tensors.emplace_back(program.shares[i.work].tensor, program.shares[i.work].gradients);
    }
  }
  return tensors;
}

TEST_CASE("a collective says which tensor it moves, and whether its gradients", "[sharing]") {
  using enum SharedTensor;
  using Tensors = std::vector<std::pair<SharedTensor, bool>>;
  const Tensors gathered = {{keys, false},   {values, false}, {keys, false},
                            {values, false}, {keys, true},    {values, true}};
  CHECK((tensors_moved({.key_exchange = KeyExchange::all_gather}) == gathered));
  CHECK((tensors_moved({.key_exchange = KeyExchange::group_cast}) == gathered));
  const Tensors traded = {{queries, false}, {keys, false},   {values, false}, {outputs, false},
                          {outputs, true},  {queries, true}, {keys, true},    {values, true}};
  CHECK((tensors_moved({.key_exchange = KeyExchange::all_to_all}) == traded));
  CHECK((tensors_moved({.key_exchange = KeyExchange::all_to_all, .a2a_ranks = 4}) == traded));
}

TEST_CASE("gathered and traded keys are waited for, as communication of the group", "[sharing]") {
  const Plan plan = test::plan_of(group_ranks, 1, {{first_ranks(group_ranks), shared_tokens}});
  for (const KeyExchange way : {KeyExchange::all_gather, KeyExchange::all_to_all}) {
    const LoweringOptions lowering = lowering_of({.key_exchange = way});
    const Program program(plan, lowering);
    Bytes shared;
    for (const SharingCollective& op : program.micro_batch(MicroBatchId(0)).shares) shared += op.bytes;
    test::HandMachine world(test::one_device_nodes(group_ranks, 10_GBps), std::make_unique<test::HandCosts>(1_us));
    world.machine.sharing = test::each_shares_at(1_GBps);
    for (const Grain grain : test::all_grains) {
      const Timeline timeline = simulate(program, world.machine, grain);
      for (const Breakdown& rank : timeline.ranks) {
        CHECK(rank[Activity::cp_comm] == shared / 1_GBps);
        CHECK(rank.total() == timeline.step_time);
      }
    }
  }
}

TEST_CASE("a slow rank holds up all that gather or trade with it", "[sharing]") {
  const Plan plan = test::plan_of(group_ranks, 1, {{first_ranks(group_ranks), shared_tokens}});
  const auto waits = [&](const Recipe& recipe, std::size_t rank) {
    ClusterSpec cluster = test::one_device_nodes(group_ranks, 10_GBps);
    cluster.speed[0] = 0.5;
    test::HandMachine world(cluster, std::make_unique<test::HandCosts>(1_s));
    world.machine.sharing = test::each_shares_at(1000_GBps);
    Transformer model = eight_billion();
    const Program program(plan, {model, Mesh{.hdp = group_ranks}, recipe});
    return simulate(program, world.machine, Grain::exact).ranks[rank][Activity::group_wait];
  };
  const Duration gathered = waits({.key_exchange = KeyExchange::all_gather}, 7);
  CHECK(gathered > Duration{});
  CHECK(waits({.key_exchange = KeyExchange::all_to_all}, 7) > Duration{});
  CHECK(waits({.key_exchange = KeyExchange::all_gather}, 0) == Duration{});
}

std::unique_ptr<World> two_nodes(const Mesh& mesh) {
  Diagnostics problems;
  const auto profile = load_profile("bytescale-implied", HDPSIM_SOURCE_DIR "/calib/profiles", {}, problems);
  problems.throw_if_any();
  auto world = World::make(test::two_nodes(), *profile, {.mesh = mesh}, problems);
  problems.throw_if_any();
  return world;
}

TEST_CASE("a collective of a group has the price of the same collective of any group like it", "[sharing]") {
  const auto world = two_nodes({.hdp = 16});
  const auto cost = [&](std::size_t first, std::int64_t count, std::int64_t party) {
    std::vector<HdpRank> group;
    for (std::int64_t i = 0; i < count; ++i) group.emplace_back(first + static_cast<std::size_t>(i));
    return world->machine().sharing({group, 0, party}, CollectiveKind::all_to_all, Bytes(64'000'000)).time;
  };
  CHECK(cost(0, 4, 4) == cost(12, 4, 4));
  CHECK(cost(0, 8, 8) == cost(8, 8, 8));
  CHECK(cost(0, 8, 4) == cost(0, 4, 4));
  CHECK(cost(6, 4, 4) > 2 * cost(0, 4, 4));  // over two nodes
  CHECK(cost(0, 16, 16) > 2 * cost(0, 8, 8));
}

TEST_CASE("the grains agree on every way to share, also beside a slow rank", "[sharing]") {
  const auto world = two_nodes({.hdp = 16});
  std::vector<double> speeds(16, 1.0);
  for (const bool slow : {false, true}) {
    if (slow) world->machine().speed[3] = 0.8;
    for (const KeyExchange way :
         {KeyExchange::ring, KeyExchange::all_gather, KeyExchange::all_to_all, KeyExchange::query_ring}) {
      for (const std::int64_t most : {0, 4}) {
        Transformer model = eight_billion();
        model.layers = 8;
        const Recipe recipe{.key_exchange = way, .a2a_ranks = most};
        const Plan plan = test::plan_of(16, 8, {{first_ranks(16), shared_tokens}, {first_ranks(8), shared_tokens / 2}});
        const Program program(plan, {model, Mesh{.hdp = 16}, recipe});
        const double exact = simulate(program, world->machine(), Grain::exact).step_time.seconds();
        const double fluid = simulate(program, world->machine(), Grain::fluid).step_time.seconds();
        CAPTURE(slow, static_cast<int>(way), most);
        CHECK(fluid == Approx(exact).epsilon(0.01));
      }
    }
  }
}

TEST_CASE("the grains agree where queries choose among gathered keys", "[sharing][indexer]") {
  const auto world = two_nodes({.hdp = 16});
  Transformer model = eight_billion();
  model.layers = 8;
  model.latent = LatentAttention{.query_rank = 1536, .kv_rank = 512, .rotated = 64};
  model.indexer = KeyIndexer{.heads = 32, .head_dim = 128, .keys = 2048};
  Layer sharing = model;
  sharing.indexer = KeyIndexer{.heads = 0, .head_dim = 0, .keys = 2048};
  model.others = {sharing};
  model.pattern = {{2, 0}, {6, 1}};
  const Recipe recipe{.key_exchange = KeyExchange::all_gather};
  const Plan plan = test::plan_of(16, 8, {{first_ranks(16), shared_tokens}, {first_ranks(8), shared_tokens / 2}});
  const Program program(plan, {model, Mesh{.hdp = 16}, recipe});
  const Timeline exact = simulate(program, world->machine(), Grain::exact);
  const Timeline fluid = simulate(program, world->machine(), Grain::fluid);
  CHECK(fluid.step_time.seconds() == Approx(exact.step_time.seconds()).epsilon(0.01));
  // Scores and their choice are attention, and those of two layers take less than those of eight.
  Transformer every = model;
  every.others.clear();
  every.pattern.clear();
  const Timeline all_score = simulate(Program(plan, {every, Mesh{.hdp = 16}, recipe}), world->machine(), Grain::fluid);
  CHECK(2 * all_score.ranks[0][Activity::attention] > 3 * fluid.ranks[0][Activity::attention]);
}

}  // namespace
}  // namespace hdpsim
