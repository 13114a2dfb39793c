#include "sim/analysis/critical_path.h"

#include "sim/plan/expert_waves.h"
#include "sim/plan/updates.h"
#include "sim/report/explanation_text.h"
#include "tests/support/catch.h"
#include "tests/support/small_world.h"

namespace hdpsim {
namespace {

using test::HandCosts;
using test::HandMachine;

constexpr std::int64_t layers = 4;

/// A plan on devices of one node each.
struct Step {
  Plan plan;
  HandMachine world;
  LoweringOptions lowering;
  Program program;
  Timeline timeline;

  Step(Plan made, ClusterSpec cluster, Grain grain, std::int64_t stages = 1)
      : plan(std::move(made)),
        world(std::move(cluster), std::make_unique<HandCosts>(1_us), stages),
        lowering{test::one_head_model(layers), Mesh{.hdp = plan.ranks, .pp = stages}},
        program(plan, lowering),
        timeline(simulate(program, world.machine, grain)) {}

  [[nodiscard]] CriticalPath path() const { return critical_path(program, timeline, world.machine); }
};

// A ring of three, then rank 1 alone; rank 3 alone, and done early.
Plan ring_and_more() {
  return test::plan_of(4, layers, {{{0, 1, 2}, 6000}, {{3}, 1000}, {{1}, 500}});
}

void check_whole(const Step& step, const CriticalPath& path) {
  CHECK(path.time().total() + path.ending == step.timeline.step_time);
}

TEST_CASE("the path goes through what the last rank waited for, and leaves out who was done early", "[critical_path]") {
  for (const Grain grain : {Grain::fluid, Grain::exact}) {
    const Step step(ring_and_more(), test::one_device_nodes(4, 1_GBps), grain);
    const CriticalPath path = step.path();
    REQUIRE(path.passes.size() == 2);
    CHECK(path.passes[0].pass == PassId(0));
    CHECK(path.passes[1].pass == PassId(2));
    CHECK(path.passes[1].last_to_come == WorkerId(1));
    CHECK(path.passes[0].begin == Instant{});
    check_whole(step, path);
  }
}

TEST_CASE("the path of a step of several updates is that of each, and its ending the ends of all", "[critical_path]") {
  const Plan plan = joined_updates({ring_and_more(), ring_and_more()});
  for (const Grain grain : {Grain::fluid, Grain::exact}) {
    const Step one(ring_and_more(), test::one_device_nodes(4, 1_GBps), grain);
    const Step step(plan, test::one_device_nodes(4, 1_GBps), grain);
    const CriticalPath path = step.path();
    REQUIRE(path.passes.size() == 4);
    CHECK(path.passes[2].pass == PassId(3));
    CHECK(path.passes[3].pass == PassId(5));
    CHECK(path.ending == one.path().ending * 2);
    check_whole(step, path);
  }
}

TEST_CASE("a ring that computes faster than it sends waits for its messages", "[critical_path]") {
  // 256 bytes of keys and values a token at 1 GB/s against a picosecond a pair.
  const Step slow(ring_and_more(), test::one_device_nodes(4, 1_GBps), Grain::fluid);
  CHECK(slow.path().time()[Activity::cp_comm] > Duration{});
  const Step fast(ring_and_more(), test::one_device_nodes(4, 1_GBps * 1'000'000), Grain::fluid);
  CHECK(fast.path().time()[Activity::cp_comm].seconds() == Approx(0).margin(1e-6));
  check_whole(fast, fast.path());
}

TEST_CASE("a group waits for the rank that comes last, and the path leads through it", "[critical_path]") {
  // Rank 2 has a long micro-batch of its own before the ring that all share.
  const Plan plan = test::plan_of(3, layers, {{{2}, 5000}, {{1}, 100}, {{0, 1, 2}, 600}});
  const Step step(plan, test::one_device_nodes(3, 1_GBps), Grain::fluid);
  const CriticalPath path = step.path();
  REQUIRE(path.passes.size() == 2);
  CHECK(path.passes[0].pass == PassId(0));
  CHECK(path.passes[1].last_to_come == WorkerId(2));
}

TEST_CASE("the path of a pipeline goes from stage to stage, messages and all", "[critical_path]") {
  constexpr std::int64_t stages = 2;
  const Plan plan = test::plan_of(2, layers / stages, {{{0, 1}, 4000}, {{0}, 1000}, {{1}, 3000}});
  for (const Grain grain : {Grain::fluid, Grain::exact}) {
    const Step step(plan, test::one_device_nodes(4, 1_GBps), grain, stages);
    const CriticalPath path = step.path();
    check_whole(step, path);
    CHECK(path.time()[Activity::bubble] > Duration{});
    bool on_first = false;
    bool on_last = false;
    for (const CriticalPass& link : path.passes) {
      on_first = on_first || step.program.pipeline().pass(link.pass).stage == 0;
      on_last = on_last || step.program.pipeline().pass(link.pass).stage == stages - 1;
    }
    CHECK((on_first && on_last));
  }
}

TEST_CASE("a rank alone waits for copies in offload_stall and for the pool's collectives in grad_sync",
          "[critical_path]") {
  for (const bool shards : {true, false}) {
    Plan plan = test::plan_of(2, layers, {{{0}, 1000}, {{1}, 1000}});
    if (!shards) plan.micro_batches[0].offload = plan.micro_batches[1].offload = 1;
    LoweringOptions lowering{test::one_head_model(layers), Mesh{.hdp = 2}};
    lowering.recipe.zero = shards ? 3 : 1;
    for (const Grain grain : {Grain::fluid, Grain::exact}) {
      HandMachine world(test::one_device_nodes(2, 1_GBps), std::make_unique<HandCosts>(1_us));
      world.machine.pool = test::each_takes(1_ms);  // far longer than the kernels of a layer
      const Program program(plan, lowering);
      const Timeline timeline = simulate(program, world.machine, grain);
      const CriticalPath path = critical_path(program, timeline, world.machine);
      const Breakdown& booked = timeline.ranks.front();
      CHECK(path.time()[Activity::offload_stall] == booked[Activity::offload_stall]);
      CHECK((path.time()[Activity::offload_stall] > Duration{}) == !shards);
      CHECK((path.time()[Activity::grad_sync] > Duration{}) == shards);
      CHECK(path.time().total() + path.ending == timeline.step_time);
    }
  }
}

TEST_CASE("a wave waits for the last rank of all its groups, and the path leads through it", "[critical_path]") {
  // Each of two ranks has an expert of every layer. Rank 0 is the later one: its first micro-batch is twice as long.
  const Plan plan =
      in_expert_waves(test::plan_of(2, layers, {{{0}, 200'000}, {{1}, 100'000}, {{0}, 50'000}, {{1}, 50'000}}), 2, 0);
  Transformer model = test::one_head_model(layers);
  model.moe = MixtureOfExperts{.experts = 2, .experts_per_token = 1, .expert_hidden = 128};
  LoweringOptions lowering{model, Mesh{.hdp = 2, .ep = 2}};
  lowering.experts.ep = 2;
  for (const Grain grain : {Grain::fluid, Grain::exact}) {
    HandMachine world(test::one_device_nodes(2, 1_GBps), std::make_unique<HandCosts>(1_us));
    world.machine.experts = world.machine.expert_pools = test::each_takes(5_us);
    const Program program(plan, lowering);
    const Timeline timeline = simulate(program, world.machine, grain);
    const CriticalPath path = critical_path(program, timeline, world.machine);
    CHECK(path.time().total() + path.ending == timeline.step_time);
    REQUIRE(path.passes.size() == 2);
    CHECK(path.passes[0].pass == PassId(0));
    CHECK(path.passes[1].last_to_come == WorkerId(0));
  }
}

TEST_CASE("the slowest hop of a ring is that of its degraded NIC", "[critical_path]") {
  ClusterSpec cluster = test::one_device_nodes(4, 10_GBps);
  cluster.degraded = {{.kind = DegradedLink::Kind::nic, .unit = 1, .index = 0, .factor = 0.25}};  // node 1, outwards
  const Step step(ring_and_more(), cluster, Grain::fluid);
  const auto hop = slowest_hop(step.program, PassId(0), step.world.machine);
  REQUIRE(hop);
  CHECK(hop->from == HdpRank(1));
  CHECK(hop->to == HdpRank(2));
  CHECK(hop->rate == (10_GBps).scaled(0.25));
  CHECK(hop->link.find("node 1 nic 0 out") != std::string::npos);
  CHECK_FALSE(slowest_hop(step.program, PassId(1), step.world.machine));  // no ring
}

TEST_CASE("an explanation names the longest passes with their sequences, and reads as text and as JSON",
          "[explanation]") {
  const Step step(ring_and_more(), test::one_device_nodes(4, 1_GBps), Grain::fluid);
  Explanation told = explanation_of(step.program, step.timeline, step.world.machine);
  CHECK(told.path_passes == 2);
  REQUIRE(told.longest.size() == 2);
  CHECK(told.longest[0].micro_batch == 0);
  CHECK(told.longest[0].ranks == 3);
  CHECK(told.longest[0].sequence_tokens == 6000);
  CHECK(told.busiest_rank == 1);
  told.changes = {{"attention twice as fast", told.step_time.scaled(0.5)}};
  const std::string text = formatted("a step", {told, told}, Format::table);
  CHECK(text.find("sequence 0 (6000 tokens)") != std::string::npos);
  CHECK(text.find("-50.0 %") != std::string::npos);
  CHECK(text.find("1.00x as fast") != std::string::npos);
  CHECK(formatted("a step", {told}, Format::json).find("hdpsim.explanation/1") != std::string::npos);
}

}  // namespace
}  // namespace hdpsim
