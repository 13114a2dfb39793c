// How a group cuts its tokens: what the busiest rank makes of a step, and what is moved for it.

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "sim/engine/cut_planner.h"
#include "sim/engine/simulator.h"
#include "sim/engine/world.h"
#include "sim/plan/group_cut.h"
#include "sim/plan/ring_steps.h"
#include "sim/profile/profile_file.h"
#include "tests/support/catch.h"
#include "tests/support/small_world.h"

namespace hdpsim {
namespace {

using Lengths = std::vector<std::int64_t>;

constexpr std::int64_t ranks = 4;
constexpr std::int64_t layers = 3;
const Lengths mixed = {16'000, 40'000, 3'000, 900, 68'000, 3'172};  // 131,072 tokens

// One pack on all ranks.
Plan packed(const Lengths& lengths, TokenCut cut, std::int64_t count = ranks) {
  Plan plan;
  plan.ranks = count;
  plan.capacity = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  plan.layers = layers;
  plan.sequence_tokens = lengths;
  MicroBatch micro_batch;
  micro_batch.cut = cut;
  for (std::int64_t rank = 0; rank < count; ++rank) micro_batch.group.emplace_back(static_cast<std::size_t>(rank));
  for (std::size_t i = 0; i < lengths.size(); ++i) micro_batch.spans.push_back({SequenceId(i), 0, lengths[i]});
  plan.micro_batches = {micro_batch};
  plan.schedule.assign(static_cast<std::size_t>(count), {MicroBatchId(0)});
  return plan;
}

LoweringOptions job(KeyExchange exchange) {
  return {test::one_head_model(layers), Mesh{.hdp = ranks}, {.key_exchange = exchange}};
}

// Attention alone takes time, a picosecond a pair forward and two backward, and collectives.
Timeline simulated_cut(const Plan& plan, KeyExchange exchange, Grain grain = Grain::fluid) {
  test::HandMachine world(test::one_device_nodes(ranks, 1000_GBps), std::make_unique<test::HandCosts>(Duration{}));
  world.machine.sharing = test::each_shares_at(1000_GBps);
  return simulate(Program(plan, job(exchange)), world.machine, grain);
}

double picoseconds(Duration time) {
  return static_cast<double>(time.picoseconds());
}

struct Way {
  TokenCut cut;
  KeyExchange exchange;
};
const std::vector<Way> uneven_ways = {{TokenCut::per_pack, KeyExchange::ring},
                                      {TokenCut::per_pack, KeyExchange::all_gather},
                                      {TokenCut::per_pack, KeyExchange::group_cast},
                                      {TokenCut::dispatch, KeyExchange::all_gather},
                                      {TokenCut::dispatch, KeyExchange::group_cast}};

TEST_CASE("the attention of a step does not change with the cut, only who has it", "[cut]") {
  const double pairs = packed(mixed, TokenCut::per_document).micro_batches[0].area();
  for (const auto& [cut, exchange] : uneven_ways) {
    CAPTURE(static_cast<int>(cut), static_cast<int>(exchange));
    const Timeline timeline = simulated_cut(packed(mixed, cut), exchange);
    double attention = 0;
    for (const Breakdown& rank : timeline.ranks) attention += picoseconds(rank[Activity::attention]);
    CHECK(attention == Approx(3 * layers * pairs).epsilon(1e-3));  // keys are whole
  }
}

TEST_CASE("with gathered keys a layer takes the attention of its busiest rank", "[cut]") {
  const Plan plan = packed(mixed, TokenCut::per_pack);
  Int128 most = 0;
  for (const RankWork& rank : group_cut_of(plan.micro_batches[0])->work()) most = std::max(most, rank.pairs);
  const Timeline timeline = simulated_cut(plan, KeyExchange::all_gather);
  for (const Breakdown& rank : timeline.ranks) {
    const Duration all = rank[Activity::attention] + rank[Activity::group_wait];
    CHECK(picoseconds(all) == Approx(3 * layers * static_cast<double>(most)).epsilon(1e-3));
  }
}

TEST_CASE("a ring takes the busiest rank of every step, no less than the busiest rank in all", "[cut]") {
  const Plan plan = packed(mixed, TokenCut::per_pack);
  const auto cut = group_cut_of(plan.micro_batches[0]);
  double steps = 0;
  for (const RingStep& step : ring_steps(*cut)) steps += static_cast<double>(step.pairs);
  double busiest = 0;
  for (const RankWork& rank : cut->work()) busiest = std::max(busiest, static_cast<double>(rank.pairs));
  CHECK(steps >= busiest);
  const Timeline timeline = simulated_cut(plan, KeyExchange::ring);
  const Breakdown& rank = timeline.ranks[0];
  CHECK(picoseconds(rank[Activity::attention] + rank[Activity::group_wait]) ==
        Approx(3 * layers * steps).epsilon(1e-3));
}

TEST_CASE("a document alone takes the same time cut as a pack", "[cut]") {
  for (const KeyExchange exchange : {KeyExchange::ring, KeyExchange::all_gather, KeyExchange::group_cast}) {
    CHECK(simulated_cut(packed({131'072}, TokenCut::per_pack), exchange).step_time ==
          simulated_cut(packed({131'072}, TokenCut::per_document), exchange).step_time);
  }
}

// What a rank receives in the forward of a layer.
std::int64_t received(const Lengths& lengths, TokenCut cut, KeyExchange exchange) {
  const Plan plan = packed(lengths, cut);
  const MicroBatchProgram program = Program(plan, job(exchange)).micro_batch(MicroBatchId(0));
  std::int64_t bytes = 0;
  for (const Block& block : program.blocks) {
    if (block.direction == Direction::backward) continue;
    for (const Instruction& i : block.body) {
      if (i.opcode == Opcode::share) bytes += program.shares[i.work].bytes.count() / ranks * (ranks - 1);
    }
  }
  return bytes;
}

TEST_CASE("a group-cast brings the keys that the neediest rank lacks, and no others", "[cut]") {
  constexpr std::int64_t kv = 256;  // bytes of a token
  // Rank 0 has the end of a document, so that it needs all keys of the other ranks.
  for (const TokenCut cut : {TokenCut::per_document, TokenCut::per_pack}) {
    CHECK(received({128'000}, cut, KeyExchange::group_cast) == 96'000 * kv);
  }
  CHECK(received({128'000}, TokenCut::per_document, KeyExchange::all_gather) == 96'000 * kv);
  // Eight documents, each of them a chunk.
  CHECK(received(Lengths(8, 16'000), TokenCut::per_pack, KeyExchange::group_cast) == 0);
  CHECK(received(Lengths(8, 16'000), TokenCut::per_document, KeyExchange::group_cast) == 96'000 * kv);
  std::int64_t most = 0;
  for (const RankWork& rank : make_group_cut(TokenCut::dispatch, mixed, ranks)->work()) {
    most = std::max(most, rank.remote_keys);
  }
  CHECK(static_cast<double>(received(mixed, TokenCut::dispatch, KeyExchange::group_cast)) ==
        Approx(static_cast<double>(most * kv)).epsilon(1e-4));
}

TEST_CASE("the grains agree on groups whose ranks have unequal work", "[cut]") {
  for (const auto& [cut, exchange] : uneven_ways) {
    CAPTURE(static_cast<int>(cut), static_cast<int>(exchange));
    const Plan plan = packed(mixed, cut);
    const double exact = simulated_cut(plan, exchange, Grain::exact).step_time.seconds();
    CHECK(simulated_cut(plan, exchange).step_time.seconds() == Approx(exact).epsilon(0.01));
    for (const Breakdown& rank : simulated_cut(plan, exchange, Grain::exact).ranks) {
      CHECK(rank[Activity::group_wait] > Duration{});
    }
  }
}

// Hands out one plan.
class Fixed final : public Planner {
 public:
  explicit Fixed(Plan plan) : plan_(std::move(plan)) {}
  [[nodiscard]] Plan plan(const Batch&, std::int64_t) const override { return plan_; }

 private:
  Plan plan_;
};

TokenCut chosen(const Plan& plan, std::optional<TokenCut> cut, Duration per_gemm = {}) {
  const auto planner = with_cut(std::make_unique<Fixed>(plan), cut, job(KeyExchange::all_gather),
                                std::make_unique<test::HandCosts>(per_gemm));
  return planner->plan({}, 0).micro_batches[0].cut;
}

TEST_CASE("plans are cut as is said, but for what they state themselves and for groups of one rank", "[cut]") {
  CHECK(chosen(packed(mixed, TokenCut::per_document), TokenCut::per_pack) == TokenCut::per_pack);
  CHECK(chosen(packed(mixed, TokenCut::dispatch), TokenCut::per_pack) == TokenCut::dispatch);
  CHECK(chosen(packed(mixed, TokenCut::per_document, 1), TokenCut::per_pack) == TokenCut::per_document);
  Plan local = packed(mixed, TokenCut::per_document);
  local.micro_batches[0].local = {{1, {local.micro_batches[0].spans.back()}}};
  local.micro_batches[0].spans.pop_back();
  CHECK(chosen(local, TokenCut::per_pack) == TokenCut::per_document);
  CHECK(with_cut(nullptr, TokenCut::per_pack, job(KeyExchange::ring), nullptr) == nullptr);
}

// A kernel that takes a microsecond more for every block: many short pieces cost more than the pairs that they even
// out.
class BlockCosts final : public CostModel {
 public:
  [[nodiscard]] Estimate gemm(const Gemm&) const override { return {}; }
  [[nodiscard]] Estimate memory_bound(const MemoryBound&) const override { return {}; }
  [[nodiscard]] std::int64_t kernels(const Attention&) const override { return 1; }
  [[nodiscard]] Estimate attention(const Attention& op) const override {
    Duration time = test::HandCosts({}).attention(op).time;
    for (const AttentionBlock& block : op.blocks) time += 1_us * block.count;
    return {time, Evidence::measured};
  }
};

TEST_CASE("the adaptive cut is per document where pairs decide, and per pack where pieces do", "[cut]") {
  CHECK(chosen(packed(mixed, TokenCut::per_document), std::nullopt) == TokenCut::per_document);
  const Plan many = packed(Lengths(64, 500), TokenCut::per_document);
  const auto planner = with_cut(std::make_unique<Fixed>(many), std::nullopt, job(KeyExchange::all_gather),
                                std::make_unique<BlockCosts>());
  CHECK(planner->plan({}, 0).micro_batches[0].cut == TokenCut::per_pack);
}

}  // namespace
}  // namespace hdpsim
