// The fluid and the exact grain simulate the same step: their times agree within 2 % on random small studies.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>

#include "sim/base/random.h"
#include "sim/engine/simulator.h"
#include "sim/engine/world.h"
#include "sim/plan/plan_check.h"
#include "sim/plan/planner.h"
#include "sim/profile/profile_file.h"
#include "sim/program/program.h"
#include "sim/trace/batch_source.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

constexpr std::uint64_t studies = 240;
constexpr double tolerance = 0.02;

template <std::size_t n>
std::int64_t one_of(RandomStream& random, const std::int64_t (&values)[n]) {
  return values[random.below(n)];
}

// Small, but with everything that the fluid grain simplifies: NICs and uplinks that rings share, slow devices, unlike
// hops.
ClusterSpec random_cluster(RandomStream& random) {
  ClusterSpec cluster;
  cluster.name = "random";
  cluster.devices_per_node = one_of(random, {2, 4, 8});
  const std::int64_t nodes = one_of(random, {1, 2, 3, 4});
  cluster.devices = nodes * cluster.devices_per_node;
  cluster.nics_per_node = cluster.devices_per_node / one_of(random, {1, 1, 2});
  cluster.nvlink = 1_GBps * one_of(random, {100, 300, 450});
  cluster.nic = 1_Gbps * one_of(random, {100, 200, 400});
  cluster.pcie = 1_GBps * one_of(random, {16, 32, 64});
  cluster.host_memory = 1000_GiB;
  cluster.device_memory = 80_GiB;
  cluster.tiers = {{.name = "leaf",
                    .fan_in = 2,
                    .oversubscription = static_cast<double>(one_of(random, {1, 1, 2})),
                    .latency = 1_us},
                   {.name = "spine", .fan_in = 2, .oversubscription = 1, .latency = 2_us}};
  for (std::uint64_t slow = random.below(3); slow > 0; --slow) {
    const auto device = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(cluster.devices)));
    cluster.speed[device] = 0.7 + 0.3 * random.uniform();
  }
  return cluster;
}

Transformer random_model(RandomStream& random) {
  const std::int64_t heads = one_of(random, {16, 32});
  return {.name = "random",
          .layers = one_of(random, {12, 24, 32}),
          .hidden = heads * 128,
          .heads = heads,
          .kv_heads = one_of(random, {4, 8, 16}),
          .head_dim = 128,
          .ffn_hidden = heads * 128 * 11 / 4,
          .vocabulary = 32000,
          .gated_mlp = true,
          .tied_embeddings = false,
          .moe = {}};
}

std::string random_policy(RandomStream& random) {
  const char* const policies[] = {"static: {cp: auto}", "hdp-naive: {}",
                                  "hdp-naive: {order: descending, offload: auto}", "hdp-balance: {}",
                                  "hdp-balance: {offload: 0.5}"};
  return policies[random.below(std::size(policies))];
}

struct Times {
  Duration fluid;
  Duration exact;
  std::string setting;
};

Times simulate_random_study(std::uint64_t seed) {
  RandomStream random(seed, "grains agree");
  const ClusterSpec cluster = random_cluster(random);
  const Transformer model = random_model(random);
  const std::int64_t tp = one_of(random, {1, 2});
  const Mesh mesh{.hdp = cluster.devices / tp, .tp = tp, .pp = 1};
  const char* const profiles[] = {"a100-published", "h100-published", "h200-published"};
  Diagnostics problems;
  const auto profile = load_profile(profiles[random.below(3)], HDPSIM_SOURCE_DIR "/calib/profiles", {}, problems);
  problems.throw_if_any();
  const auto world = World::make(cluster, *profile, mesh, "contiguous", problems);
  problems.throw_if_any();

  const std::int64_t capacity = one_of(random, {2048, 4096, 8192});
  const std::int64_t context = capacity * one_of(random, {1, 2, 4}) * mesh.hdp / 4 + capacity;
  const std::int64_t fits = std::min(context, capacity * mesh.hdp);
  const auto lengths = make_distribution(Lognormal{.mu = std::log(3000.0), .sigma = 0.8 + random.uniform()});
  const auto batches =
      make_batches(lengths, {.context = fits, .tokens_per_step = 4 * mesh.hdp * capacity, .seed = seed});
  const PlanningContext planning{.ranks = mesh.hdp,
                                 .ranks_per_node = world->ranks_per_node(),
                                 .capacity = capacity,
                                 .context = fits,
                                 .layers = model.layers,
                                 .work = world->work_model(model, capacity),
                                 .host_tokens = 1 << 30};
  const std::string policy = random_policy(random);
  const auto planner = make_planner(parse_document("policy", policy, problems), planning, problems);
  problems.throw_if_any();
  const Plan plan = planner->plan(batches->step(0), 0);
  REQUIRE(check_plan(plan).empty());

  const LoweringOptions lowering{model, mesh, one_of(random, {2, 4})};
  const Program program(plan, lowering);
  const Timeline fluid = simulate(program, world->machine(), Grain::fluid);
  const Timeline exact = simulate(program, world->machine(), Grain::exact);
  for (const Timeline* timeline : {&fluid, &exact}) {
    for (const Breakdown& rank : timeline->ranks) REQUIRE(rank.total() == timeline->step_time);
  }
  const bool shared = cluster.devices_per_nic() > 1 || cluster.tiers[0].oversubscription > 1;
  return {
      fluid.step_time, exact.step_time,
      fmt::format("{} on {} nodes of {}, tp {}, {} layers, {} slow devices{}", policy, cluster.nodes(),
                  cluster.devices_per_node, tp, model.layers, cluster.speed.size(), shared ? ", shared links" : "")};
}

TEST_CASE("fluid and exact agree within 2 % on random small studies", "[grains]") {
  // HDPSIM_SEED=n runs one study alone.
  const char* const one_seed = std::getenv("HDPSIM_SEED");
  const std::uint64_t first = one_seed != nullptr ? std::strtoull(one_seed, nullptr, 10) : 1;
  const std::uint64_t last = one_seed != nullptr ? first : studies;
  double worst = 0;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    const Times times = simulate_random_study(seed);
    const double difference = times.fluid.seconds() / times.exact.seconds() - 1;
    worst = std::max(worst, std::abs(difference));
    INFO(times.setting << ": fluid " << times.fluid.seconds() << " s, exact " << times.exact.seconds()
                       << " s, difference " << 100 * difference << " %");
    INFO("replay: HDPSIM_SEED=" << seed << " test_property [grains]");
    CHECK(std::abs(difference) <= tolerance);
  }
  WARN("largest difference over " << last - first + 1 << " studies: " << 100 * worst << " %");
}

}  // namespace
}  // namespace hdpsim
