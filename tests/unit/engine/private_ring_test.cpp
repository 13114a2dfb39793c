// The exact grain runs micro-batches of whose rings no message meets another one without the event queue. It must not
// show.

#include <string>
#include <utility>
#include <vector>

#include "sim/base/random.h"
#include "sim/engine/impl/simulation.h"
#include "sim/plan/plan_check.h"
#include "tests/support/catch.h"
#include "tests/support/small_world.h"

namespace hdpsim {
namespace {

using test::HandCosts;
using test::HandMachine;

// Groups of unlike sizes over ranks of unlike speed, some of which copy activations to slow host memory.
Plan random_plan(RandomStream& random, std::int64_t ranks, std::int64_t layers) {
  std::vector<std::pair<std::vector<std::size_t>, std::int64_t>> micro_batches;
  for (int m = 0; m < 8; ++m) {
    std::vector<std::size_t> group;
    const auto first = random.below(static_cast<std::uint64_t>(ranks));
    const auto count = 1 + random.below(static_cast<std::uint64_t>(ranks));
    for (std::uint64_t i = 0; i < count; ++i) group.push_back((first + i) % static_cast<std::uint64_t>(ranks));
    const auto tokens = static_cast<std::int64_t>(count * (1 + random.below(40)));
    micro_batches.emplace_back(std::move(group), tokens);
  }
  Plan plan = test::plan_of(ranks, layers, micro_batches);
  for (MicroBatch& micro_batch : plan.micro_batches) {
    if (random.below(3) == 0) micro_batch.offload = random.uniform();
  }
  return plan;
}

Transformer model_of(std::int64_t heads, std::int64_t layers) {
  Transformer model = test::one_head_model(layers);
  model.heads = model.kv_heads = heads;
  model.hidden = heads * model.head_dim;
  return model;
}

// Groups share keys and values in any way.
Recipe random_recipe(RandomStream& random) {
  Recipe recipe{.dkv_bytes_per_element = 4};
  recipe.key_exchange = static_cast<KeyExchange>(random.below(3));
  recipe.a2a_ranks = static_cast<std::int64_t>(random.below(3));
  return recipe;
}

ClusterSpec random_nodes(RandomStream& random, std::int64_t nodes) {
  ClusterSpec cluster = test::one_device_nodes(nodes, 1_GBps * static_cast<std::int64_t>(1 + random.below(400)));
  cluster.pcie = 1_GBps * static_cast<std::int64_t>(1 + random.below(400));
  cluster.tiers[0].latency = Duration::picoseconds(static_cast<std::int64_t>(random.below(3) * 700));
  for (std::int64_t device = 0; device < nodes; ++device) {
    if (random.below(3) == 0) cluster.speed[device] = 0.5 + 0.5 * random.uniform();
    if (nodes > 1 && random.below(4) == 0) {
      cluster.degraded.push_back({.unit = device, .factor = 0.1 + 0.9 * random.uniform()});
    }
  }
  return cluster;
}

void check_same(const Timeline& a, const Timeline& b) {
  CHECK(a.step_time == b.step_time);
  CHECK(a.evidence == b.evidence);
  CHECK(a.links.bytes == b.links.bytes);
  for (std::size_t rank = 0; rank < a.ranks.size(); ++rank) {
    for (const Activity activity : all_activities) {
      INFO("rank " << rank << ", " << activity_name(activity));
      CHECK(a.ranks[rank][activity] == b.ranks[rank][activity]);
    }
  }
  for (std::size_t m = 0; m < a.micro_batches.size(); ++m) {
    CHECK(a.micro_batches[m].begin == b.micro_batches[m].begin);
    CHECK(a.micro_batches[m].end == b.micro_batches[m].end);
  }
}

TEST_CASE("a ring without shared links takes the same time to the picosecond with and without the event queue",
          "[exact]") {
  constexpr std::uint64_t worlds = 200;
  for (std::uint64_t seed = 1; seed <= worlds; ++seed) {
    INFO("seed " << seed);
    RandomStream random(seed, "private rings");
    const auto ranks = static_cast<std::int64_t>(1 + random.below(7));
    const auto layers = static_cast<std::int64_t>(1 + random.below(seed % 4 == 0 ? 40 : 5));
    HandMachine world(
        random_nodes(random, ranks),
        std::make_unique<HandCosts>(Duration::picoseconds(static_cast<std::int64_t>(random.below(3) * 500))));
    const Plan plan = random_plan(random, ranks, layers);
    REQUIRE(check_plan(plan).empty());
    const LoweringOptions lowering{model_of(4, layers), Mesh{.hdp = ranks}, random_recipe(random)};
    world.machine.sharing = test::each_shares_at(1_GBps);
    const Program program(plan, lowering);
    const auto exact = [&](bool queue_all) {
      return Simulation(program, world.machine, Grain::exact, {}, queue_all).run();
    };
    const Timeline unqueued = exact(false);
    const Timeline queued = exact(true);
    check_same(unqueued, queued);
    CHECK(unqueued.events == queued.events);
  }
}

// Two devices a NIC, sometimes both of one rank, and uplinks that carry less than the nodes below them.
ClusterSpec random_shared_nics(RandomStream& random) {
  const auto nodes = static_cast<std::int64_t>(2 + 2 * random.below(3));
  ClusterSpec cluster = random_nodes(random, nodes);
  cluster.devices_per_node = random.below(2) == 0 ? 2 : 4;
  cluster.devices = nodes * cluster.devices_per_node;
  cluster.nics_per_node = cluster.devices_per_node / 2;
  cluster.nvlink = 1_GBps * static_cast<std::int64_t>(1 + random.below(400));
  cluster.degraded.clear();
  cluster.tiers[0].fan_in = 1 + static_cast<std::int64_t>(random.below(2));
  cluster.tiers[0].oversubscription = 1 + static_cast<double>(random.below(2));
  cluster.tiers.push_back({.name = "spine", .fan_in = nodes, .oversubscription = 1, .latency = {}});
  return cluster;
}

// Ranks of several devices, in stages.
struct ShardedMachine {
  HandMachine world;
  Mesh mesh;

  ShardedMachine(const ClusterSpec& cluster, std::int64_t tp, std::int64_t pp)
      : world(cluster, std::make_unique<HandCosts>(Duration::picoseconds(500))),
        mesh{.hdp = cluster.devices / (tp * pp), .tp = tp, .pp = pp} {
    Diagnostics problems;
    world.placement = make_placement("contiguous", mesh, world.cluster, problems);
    problems.throw_if_any();
    world.machine.placement = world.placement.get();
    world.machine.tp = tp;
    world.machine.speed.resize(static_cast<std::size_t>(mesh.hdp * pp));
  }
};

TEST_CASE(
    "a ring over links that no two messages use at a time takes the same time to the picosecond with and without "
    "the event queue",
    "[exact]") {
  constexpr std::uint64_t worlds = 200;
  int spared = 0;
  for (std::uint64_t seed = 1; seed <= worlds; ++seed) {
    INFO("seed " << seed);
    RandomStream random(seed, "serial links");
    const auto tp = static_cast<std::int64_t>(1 + random.below(2));
    const auto pp = static_cast<std::int64_t>(1 + random.below(2));
    const std::int64_t layers = pp * static_cast<std::int64_t>(1 + random.below(3));
    ShardedMachine shards(random_shared_nics(random), tp, pp);
    const Plan plan = random_plan(random, shards.mesh.hdp, layers);
    REQUIRE(check_plan(plan).empty());
    const LoweringOptions lowering{model_of(4, layers), shards.mesh, random_recipe(random)};
    shards.world.machine.sharing = test::each_shares_at(1_GBps);
    const Program program(plan, lowering);
    const auto exact = [&](bool queue_all) {
      return Simulation(program, shards.world.machine, Grain::exact, {}, queue_all).run();
    };
    const Timeline unqueued = exact(false);
    const Timeline queued = exact(true);
    check_same(unqueued, queued);
    CHECK(unqueued.events <= queued.events);
    if (unqueued.events < queued.events) ++spared;
  }
  CHECK(spared > 0);
}

}  // namespace
}  // namespace hdpsim
