// Ranks of a group that hold some sequences alone: their attention hides what the group exchanges for the others.

#include <algorithm>
#include <vector>

#include "sim/engine/simulator.h"
#include "sim/plan/plan_time.h"
#include "tests/support/catch.h"
#include "tests/support/plain_rings.h"
#include "tests/support/small_world.h"

namespace hdpsim {
namespace {

constexpr std::int64_t local_layers = 3;
constexpr std::int64_t kv = 256;  // bytes of a token's keys and values

// Two ranks that share a sequence of `shared` tokens; `first` and `second` are held by one of them each, if any.
Plan mixed_plan(std::int64_t shared, std::int64_t first, std::int64_t second) {
  Plan plan = test::plan_of(2, local_layers, {{{0, 1}, shared}});
  for (const auto& [holder, tokens] : {std::pair<std::size_t, std::int64_t>{0, first}, {1, second}}) {
    if (tokens == 0) continue;
    plan.micro_batches[0].local.push_back({holder, {{SequenceId(plan.sequence_tokens.size()), 0, tokens}}});
    plan.sequence_tokens.push_back(tokens);
  }
  return plan;
}

// Attention takes a picosecond a pair forward and two backward, messages and collectives run at `rate`, and a product
// takes `per_gemm`.
struct SpansWorld {
  Bandwidth rate = 1000_GBps;
  Duration per_gemm = {};
  KeyExchange exchange = KeyExchange::all_gather;
  bool record = false;

  [[nodiscard]] Timeline run(const Plan& plan, Grain grain) const {
    test::HandMachine hand(test::one_device_nodes(plan.ranks, rate), std::make_unique<test::HandCosts>(per_gemm));
    hand.machine.sharing = test::each_shares_at(rate);
    hand.machine.record_instructions = record;
    const LoweringOptions job{test::one_head_model(local_layers), Mesh{.hdp = plan.ranks}, {.key_exchange = exchange}};
    return simulate(Program(plan, job), hand.machine, grain);
  }
};

double in_picoseconds(Duration time) {
  return static_cast<double>(time.picoseconds());
}

double pairs(std::int64_t tokens) {
  return static_cast<double>(tokens) * static_cast<double>(tokens + 1) / 2;
}

TEST_CASE("gathering keys hides behind the attention of what ranks hold alone", "[local]") {
  constexpr std::int64_t shared = 4'000;
  for (const std::int64_t held : {500, 2'000, 6'000}) {
    for (const Bandwidth rate : {200_GBps, 1000_GBps}) {
      CAPTURE(held, rate.bytes_per_second());
      const Timeline timeline = SpansWorld{.rate = rate}.run(mixed_plan(shared, held, 100), Grain::fluid);
      const double gathered = in_picoseconds(Bytes(shared * kv) / rate);
      const double returned = gathered;  // the gradients, in the elements of keys
      const double own = pairs(shared) / 2;
      const double forward = std::max(gathered, pairs(held)) + own;
      const double backward = std::max(gathered, 2 * pairs(held)) + 2 * own + returned;
      CHECK(in_picoseconds(timeline.step_time) == Approx(local_layers * (forward + backward)).epsilon(2e-3));
    }
  }
}

TEST_CASE("a ring's first exchange hides behind the attention of what ranks hold alone", "[local]") {
  constexpr std::int64_t shared = 4'000;
  constexpr std::int64_t held = 3'000;
  const SpansWorld world{.rate = 150_GBps, .exchange = KeyExchange::ring};
  const double alone = in_picoseconds(world.run(mixed_plan(shared, 0, 0), Grain::exact).step_time);
  const double beside = in_picoseconds(world.run(mixed_plan(shared, held, 0), Grain::exact).step_time);
  // A message of a rank's 2,000 tokens takes 3.4 us, its own 2 M pairs 2 us forward and 4 us backward: without the held
  // sequence, forward waits 1.4 us a layer for it.
  const double message = in_picoseconds(Bytes(shared / 2 * kv) / world.rate);
  const double waited = message - pairs(shared / 2);
  CHECK(waited > 0);
  CHECK(beside - alone == Approx(local_layers * (3 * pairs(held) - waited)).epsilon(2e-3));
}

TEST_CASE("the layers of a group wait for the rank with most work of its own, and the mean rank waits", "[local]") {
  // Rank 0 has 3,000 of 4,000 tokens, the mean rank 2,000: a third of the products is waiting.
  const Timeline timeline = SpansWorld{.per_gemm = 10_us}.run(mixed_plan(2'000, 2'000, 0), Grain::fluid);
  const Timeline even = SpansWorld{.per_gemm = 10_us}.run(mixed_plan(2'000, 0, 0), Grain::fluid);
  for (const Breakdown& rank : timeline.ranks) {
    CHECK(in_picoseconds(rank[Activity::linear]) ==
          Approx(in_picoseconds(even.ranks[0][Activity::linear]) * 2 / 3).epsilon(1e-6));
    const double attention =
        local_layers * 3 * (pairs(2'000) / 2 + pairs(2'000) / 2);  // the shared half, the mean rank's own
    CHECK(in_picoseconds(rank[Activity::attention]) == Approx(attention).epsilon(2e-3));
  }
}

TEST_CASE("the grains agree on groups whose ranks hold spans alone", "[local]") {
  for (const KeyExchange exchange : {KeyExchange::ring, KeyExchange::all_gather, KeyExchange::group_cast,
                                     KeyExchange::all_to_all, KeyExchange::query_ring}) {
    for (const std::int64_t held : {300, 5'000}) {
      CAPTURE(static_cast<int>(exchange), held);
      const Plan plan = mixed_plan(4'000, held, 200);
      const SpansWorld world{.rate = 300_GBps, .per_gemm = 1_us, .exchange = exchange};
      const Timeline exact = world.run(plan, Grain::exact);
      CHECK(world.run(plan, Grain::fluid).step_time.seconds() == Approx(exact.step_time.seconds()).epsilon(0.01));
      SpansWorld queued = world;
      queued.record = true;
      const Timeline events = queued.run(plan, Grain::exact);
      CHECK(events.step_time == exact.step_time);
      for (std::size_t rank = 0; rank < exact.ranks.size(); ++rank) {
        for (std::size_t a = 0; a < activity_count; ++a) {
          CAPTURE(rank, activity_name(static_cast<Activity>(a)));
          CHECK(events.ranks[rank][static_cast<Activity>(a)] == exact.ranks[rank][static_cast<Activity>(a)]);
        }
      }
    }
  }
}

TEST_CASE("the planner's estimate counts what the busiest rank holds alone", "[local]") {
  WorkModel work;
  work.per_token = 1;
  const PlanTime time = plan_time(mixed_plan(2'000, 500, 300), test::with_plain_rings(work));
  CHECK(time.step() == Approx(1'000 + 500));
}

}  // namespace
}  // namespace hdpsim
