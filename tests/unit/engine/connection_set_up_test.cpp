#include "sim/engine/impl/connection_set_up.h"

#include "sim/engine/simulator.h"
#include "tests/support/catch.h"
#include "tests/support/small_world.h"

namespace hdpsim {
namespace {

using test::all_grains;
using test::HandCosts;
using test::HandMachine;
using test::one_device_nodes;
using test::one_head_model;
using test::plan_of;

constexpr Duration contact = 20_ms;
constexpr Duration base = 500_ms;
constexpr Duration per_rank = 30_ms;

Timeline run_connecting(const Plan& plan, const std::optional<SetUpCosts>& set_up, Grain grain) {
  HandMachine world(one_device_nodes(plan.ranks, 100_GBps), std::make_unique<HandCosts>(1_us));
  world.machine.set_up = set_up;
  const LoweringOptions options{one_head_model(plan.layers), Mesh{.hdp = plan.ranks}};
  const Program program(plan, options);
  return simulate(program, world.machine, grain);
}

SetUpCosts set_up_costs(Communicators communicators) {
  return {communicators, {base, per_rank}, contact};
}

// What a cold step takes beyond a warm one.
Duration extra(const Plan& plan, Communicators communicators, Grain grain) {
  return run_connecting(plan, set_up_costs(communicators), grain).step_time -
         run_connecting(plan, std::nullopt, grain).step_time;
}

TEST_CASE("a ring sets up its connections once", "[engine][connections]") {
  const Plan plan = plan_of(4, 2, {{{0, 1, 2, 3}, 4096}, {{0, 1, 2, 3}, 4096}});
  for (const Grain grain : all_grains) {
    const Timeline cold = run_connecting(plan, set_up_costs(Communicators::one), grain);
    CHECK(cold.step_time == run_connecting(plan, std::nullopt, grain).step_time + contact);
    for (const Breakdown& rank : cold.ranks) CHECK(rank[Activity::overhead] == contact);
  }
}

TEST_CASE("rings that have a pair in common set it up once, communicators each time", "[engine][connections]") {
  // Rank 1 is in all three groups, so that they run one after another and its time is the step's.
  const Plan plan = plan_of(3, 2, {{{0, 1}, 2048}, {{1, 2}, 2048}, {{0, 1}, 4096}});
  for (const Grain grain : all_grains) {
    CHECK(extra(plan, Communicators::one, grain) == 2 * contact);
    CHECK(extra(plan, Communicators::per_group, grain) == 2 * (base + 2 * per_rank + contact));
  }
}

TEST_CASE("a wider group makes a communicator of its own but only the connections that are new",
          "[engine][connections]") {
  const Plan plan = plan_of(3, 2, {{{0, 1}, 2048}, {{0, 1, 2}, 3072}});
  for (const Grain grain : all_grains) {
    CHECK(extra(plan, Communicators::one, grain) == 2 * contact);
    CHECK(extra(plan, Communicators::per_group, grain) == (base + 2 * per_rank) + (base + 3 * per_rank) + 2 * contact);
  }
  // All three pairs are there before the ring of three needs them.
  const Plan known = plan_of(3, 2, {{{0, 1}, 2048}, {{1, 2}, 2048}, {{0, 2}, 2048}, {{0, 1, 2}, 3072}});
  for (const Grain grain : all_grains) CHECK(extra(known, Communicators::one, grain) == 3 * contact);
}

TEST_CASE("set-up starts when the last rank of the group is there, and all of it stands still",
          "[engine][connections]") {
  const Plan plan = plan_of(2, 2, {{{0}, 3000}, {{0, 1}, 2048}});
  for (const Grain grain : all_grains) {
    const Timeline cold = run_connecting(plan, set_up_costs(Communicators::one), grain);
    // Rank 1 has nothing before the ring; rank 0 has the first micro-batch.
    const Duration first = cold.micro_batches[0].end - Instant{};
    CHECK(cold.step_time == run_connecting(plan, std::nullopt, Grain::fluid).step_time + contact);
    CHECK(cold.ranks[1][Activity::group_wait] == first);
    CHECK(cold.ranks[0][Activity::group_wait] == Duration{});
    CHECK(cold.ranks[0][Activity::overhead] == contact);
    CHECK(cold.ranks[1][Activity::overhead] == contact);
  }
}

TEST_CASE("disjoint groups set up at the same time, ranks alone not at all", "[engine][connections]") {
  const Plan plan = plan_of(5, 2, {{{0, 1}, 2048}, {{2, 3}, 2048}, {{4}, 512}});
  for (const Grain grain : all_grains) {
    CHECK(extra(plan, Communicators::per_group, grain) == base + 2 * per_rank + contact);
    CHECK(run_connecting(plan, set_up_costs(Communicators::per_group), grain).ranks[4][Activity::overhead] ==
          Duration{});
  }
}

TEST_CASE("a group is due until it has been connected, and only where something costs time", "[connections]") {
  const std::vector<HdpRank> group = {HdpRank(0), HdpRank(1)};
  Machine machine;
  CHECK_FALSE(ConnectionSetUp(machine).is_due(group));  // warm
  machine.set_up = SetUpCosts{};
  CHECK_FALSE(ConnectionSetUp(machine).is_due(group));  // cold, nothing known of it
  machine.set_up = set_up_costs(Communicators::one);
  ConnectionSetUp set_up(machine);
  CHECK(set_up.is_due(group));
  CHECK(set_up.connect(group) == contact);
  CHECK_FALSE(set_up.is_due(group));
  CHECK(set_up.connect(group) == Duration{});
}

}  // namespace
}  // namespace hdpsim
