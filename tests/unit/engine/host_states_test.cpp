#include "sim/engine/simulator.h"
#include "sim/engine/step_ending.h"
#include "tests/support/catch.h"
#include "tests/support/small_world.h"

namespace hdpsim {
namespace {

using test::HandCosts;
using test::HandMachine;
using test::one_device_nodes;
using test::one_head_model;
using test::plan_of;

constexpr std::int64_t host_layers = 3;

// Two ranks with a micro-batch of one token each. Products take no time, and collectives none, so that only copies and
// the host's update do: copies to it go at 1 GB/s, those from it at 2 GB/s.
struct HostedStep {
  explicit HostedStep(const Recipe& recipe, std::size_t ranks = 2) {
    std::vector<std::pair<std::vector<std::size_t>, std::int64_t>> each;
    for (std::size_t rank = 0; rank < ranks; ++rank) each.push_back({{rank}, 1});
    const Plan plan = plan_of(static_cast<std::int64_t>(ranks), host_layers, each);
    const LoweringOptions options{
        .model = one_head_model(host_layers), .mesh = {.hdp = static_cast<std::int64_t>(ranks)}, .recipe = recipe};
    HandMachine world(one_device_nodes(static_cast<std::int64_t>(ranks), 1_GBps),
                      std::make_unique<HandCosts>(Duration{}));
    world.machine.d2h = 1_GBps;
    world.machine.h2d = 2_GBps;
    world.machine.pool = [](CollectiveKind, Bytes) { return Estimate{Duration{}, Evidence::formula}; };
    const Program program(plan, options);
    end = program.step_end();
    copies = program.micro_batch(MicroBatchId(0)).host_copies;
    time = simulate(program, world.machine, Grain::exact).step_time;
    fluid = simulate(program, world.machine, Grain::fluid).step_time;
  }

  StepEnd end;
  HostShares copies;
  Duration time;
  Duration fluid;
};

TEST_CASE("a step waits for the copies and the update of its host, or for the longest of them", "[engine][host]") {
  const Duration without = HostedStep({.zero = 1}).time;
  HostStates host{.optimizer = 1, .updates_per_s = 1e9, .devices = 4};
  const HostedStep step({.zero = 1, .host = host});
  const std::int64_t n = step.end.optimizer.host.parameters;
  REQUIRE(n > 0);
  CHECK(step.end.optimizer.elementwise.traffic == Bytes{});
  const Duration update = Duration::seconds(static_cast<double>(n) / (1e9 / 4));
  CHECK(step.time - without == Bytes(4 * n) / 1_GBps + update + Bytes(2 * n) / 2_GBps);
  host.overlaps = true;
  CHECK(HostedStep({.zero = 1, .host = host}).time - without == std::max(update, Bytes(4 * n) / 1_GBps));
  CHECK(step.fluid == step.time);
}

TEST_CASE("shards are copied with the collectives of every layer, on one rank as well", "[engine][host]") {
  const Recipe recipe{.zero = 3, .host = {.optimizer = 0.5, .parameters = true, .updates_per_s = 1e15}};
  const HostedStep two(recipe);
  CHECK(two.copies.gathered == 0.5);
  CHECK(two.copies.reduced == 0.25);
  CHECK(two.end.optimizer.host.from_device == Bytes{});
  CHECK(two.end.optimizer.host.to_device == Bytes{});
  const HostedStep alone(recipe, 1);
  CHECK(alone.copies.gathered == 1);
  CHECK(alone.copies.reduced == 0.5);
  const Duration here = HostedStep({.zero = 3}, 1).time;
  // Nothing computes while they are copied: each parameter twice from the host, half of each gradient back. Only the
  // tables, which backward still has, are copied once.
  const std::int64_t all = 2 * alone.end.optimizer.host.parameters;
  CHECK(alone.time - here <= Bytes(2 * 2 * all) / 2_GBps + Bytes(2 * all / 2) / 1_GBps);
  CHECK(alone.time - here > Bytes(2 * all) / 2_GBps + Bytes(2 * all / 2) / 1_GBps);
  CHECK(alone.fluid == alone.time);
}

}  // namespace
}  // namespace hdpsim
