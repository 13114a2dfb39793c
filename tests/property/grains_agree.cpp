// The fluid and the exact grain simulate the same step: their times agree within 2 % on random small studies, no worse
// in cold steps and with kernels that messages slow, and nearly always over every fabric and beside another job.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/random.h"
#include "sim/engine/simulator.h"
#include "sim/engine/world.h"
#include "sim/model/layers.h"
#include "sim/plan/plan_check.h"
#include "sim/plan/planner.h"
#include "sim/profile/profile_file.h"
#include "sim/program/program.h"
#include "sim/trace/batch_source.h"
#include "tests/support/catch.h"
#include "tests/support/checked_network.h"
#include "tests/support/every_schedule.h"
#include "tests/support/planner_of.h"
#include "tests/support/random_clusters.h"
#include "tests/support/seeds.h"

namespace hdpsim {
namespace {

constexpr std::uint64_t studies_of_grains = 240;
constexpr double tolerance = 0.02;
constexpr double tolerance_of_mean_change = 0.001;
// Beside another job it hangs on the phase of both which messages meet, and the fluid grain has only their average: a
// few of the studies miss the tolerance (0.6 % of 2,211, the worst differs by 7.4 %).
constexpr double tolerance_beside = 0.08;
constexpr double most_outliers_beside = 0.03;

// Of these studies one differs by more than 2 %, by 2.9 %: its rings share links and have slow devices.
constexpr double tolerance_in_pipelines = 0.03;
constexpr double most_outliers_in_pipelines = 0.005;

using tests::FabricKind;
using tests::one_of;

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

// The same with another fabric between the nodes, sometimes PCIe in them, sometimes links that carry less.
std::string change_fabric(ClusterSpec& cluster, std::uint64_t seed) {
  RandomStream random(seed, "grains agree on fabrics");
  const FabricKind kind = tests::fabric_kinds[seed % std::size(tests::fabric_kinds)];
  tests::join_nodes(cluster, kind, random);
  const bool pcie = random.below(4) == 0;
  const bool degraded = random.below(2) == 0;
  if (pcie) tests::drop_nvlink(cluster);
  if (degraded) tests::degrade_links(cluster, random);
  return fmt::format(", {}{}{}", tests::name_of(kind), pcie ? ", PCIe" : "", degraded ? ", degraded links" : "");
}

Transformer random_model(RandomStream& random) {
  const std::int64_t heads = one_of(random, {16, 32});
  Transformer model;
  model.name = "random";
  model.layers = one_of(random, {12, 24, 32});
  model.hidden = heads * 128;
  model.heads = heads;
  model.kv_heads = one_of(random, {4, 8, 16});
  model.head_dim = 128;
  model.ffn_hidden = heads * 128 * 11 / 4;
  model.vocabulary = 32000;
  return model;
}

std::string random_policy(RandomStream& random) {
  const char* const policies[] = {"static: {cp: auto}", "hdp-naive: {}",
                                  "hdp-naive: {order: descending, offload: auto}", "hdp-balance: {}",
                                  "hdp-balance: {offload: 0.5}"};
  return policies[random.below(std::size(policies))];
}

// What a study may add to the plain ones.
struct Communication {
  ConnectionOptions connections;
  std::optional<ConnectionCosts> costs;
  std::optional<Slowdown> beside;

  [[nodiscard]] std::string text() const {
    const bool one = connections.communicators == Communicators::one;
    const std::string cold = one ? "cold" : "cold with a communicator a group";
    const std::string warm = connections.cold ? cold : "warm";
    return beside ? fmt::format("{}, kernels up to {:.2f} times slower", warm, beside->factor) : warm;
  }
};

// Cold steps in two studies of three, kernels that messages slow in two of three and wherever steps are warm.
Communication random_communication(std::uint64_t seed) {
  RandomStream random(seed, "communication");
  Communication drawn;
  drawn.connections.cold = random.below(3) > 0;
  drawn.connections.communicators = random.below(2) == 0 ? Communicators::one : Communicators::per_group;
  const CommunicatorCost communicator{100_ms * one_of(random, {1, 5, 20}), 1_ms * one_of(random, {0, 10, 80})};
  drawn.costs = ConnectionCosts{1_ms * one_of(random, {1, 20, 200}), std::nullopt, communicator, "random"};
  const bool slower = random.below(3) > 0 || !drawn.connections.cold;
  if (slower) drawn.beside = Slowdown{1 + 0.5 * random.uniform(), "random"};
  return drawn;
}

// A job of a random study: its ranks, and what becomes of its batches.
struct DrawnJob {
  Mesh mesh;
  NodeList nodes;
  std::string policy = {};
  BatchSourcePtr batches = {};
  std::unique_ptr<Planner> planner = {};

  [[nodiscard]] Plan plan(std::int64_t step) const {
    Plan made = planner->plan(batches->step(step), step);
    REQUIRE(check_plan(made).empty());
    return made;
  }
};

struct Capacity {
  std::int64_t tokens;
  std::int64_t contexts;  // in quarters of the pool
};

DrawnJob random_job(RandomStream& random, std::uint64_t seed, const Transformer& model, const Capacity& capacity,
                    DrawnJob job, const Job& placed, const ExpertLayout& experts = {}, std::int64_t padding = 0,
                    const Recipe& recipe = {}) {
  const std::int64_t ranks = job.mesh.hdp;
  const std::int64_t context = capacity.tokens * capacity.contexts * ranks / 4 + capacity.tokens;
  const std::int64_t fits = std::min(context, capacity.tokens * ranks);
  const auto lengths = make_distribution(Lognormal{.mu = std::log(3000.0), .sigma = 0.8 + random.uniform()});
  job.batches = make_batches(lengths, {.context = fits, .tokens_per_step = 4 * ranks * capacity.tokens, .seed = seed});
  const LoweringOptions lowering{.model = model, .mesh = job.mesh, .recipe = recipe, .experts = experts};
  const PlanningContext planning{.ranks = ranks,
                                 .ranks_per_node = placed.ranks_per_node(),
                                 .capacity = capacity.tokens,
                                 .context = fits,
                                 .layers = model.layers / job.mesh.pp,
                                 .stages = job.mesh.pp,
                                 .served_bytes = {16384, 4096},
                                 .work = placed.work_model(lowering, capacity.tokens),
                                 .expert_ranks = expert_ranks(experts.division(), job.mesh.tp),
                                 .expert_padding = padding,
                                 .host_tokens = 1 << 30};
  if (job.policy.empty()) job.policy = random_policy(random);
  Diagnostics problems;
  job.planner = test::planner_of(parse_document("policy", job.policy, problems), planning, problems);
  problems.throw_if_any();
  return job;
}

// Every second node, from this one on.
NodeList half_of(const ClusterSpec& cluster, std::int64_t first) {
  std::vector<NodeId> nodes;
  for (std::int64_t node = first; node < cluster.nodes(); node += 2) nodes.emplace_back(static_cast<std::size_t>(node));
  return NodeList(nodes);
}

struct Times {
  Duration fluid;
  Duration exact;
  std::string setting;
  [[nodiscard]] double difference() const { return fluid.seconds() / exact.seconds() - 1; }
};

// A step over a watched network. No link carries its bytes faster than its rate allows.
Timeline simulate_checked(const Program& program, Machine machine, Grain grain) {
  constexpr std::size_t interval = 16;
  tests::CheckedNetwork network(*machine.network, interval);
  machine.network = &network;
  machine.traffic = nullptr;  // collectives that overlap do not slow each other
  Timeline timeline = simulate(program, machine, grain);
  for (const Breakdown& rank : timeline.ranks) REQUIRE(rank.total() == timeline.step_time);
  for (std::size_t link = 0; link < timeline.links.bytes.size(); ++link) {
    const Bytes bytes = timeline.links.bytes[link];
    if (bytes > Bytes{}) REQUIRE(timeline.step_time >= bytes / network.link_rate(LinkId(link)));
  }
  return timeline;
}

// What is random about a study.
struct Choice {
  bool other_fabrics = false;
  bool pipelines = false;
  bool two_jobs = false;  ///< Half of the nodes belong to a job that trains beside it.
  bool recomputes = false;
  bool token_wise = false;  ///< Offload with a split of the tokens.
  bool chunks = false;      ///< Chunks in order; pipelines run 1F1B.
  bool served = false;      ///< Ranks attend for each other.
  bool experts = false;     ///< A mixture of experts.
  bool kinds = false;       ///< Layers of two kinds.
  bool indexed = false;     ///< Queries choose keys.
  bool all_nics = false;    ///< Rings use all NICs of a node.
  Communication communication = {};
};

// 8 experts, 2 of which a token takes, on as many devices as fit, even or not: inside ranks, or over ranks, which then
// go through waves.
struct Experts {
  ExpertLayout layout = {};
  bool padding = false;
  [[nodiscard]] std::string text() const {
    if (layout.ep == 1) return "";
    return fmt::format(", experts on {} devices, cut over {}{}{}", layout.ep, layout.etp,
                       layout.shares.empty() ? "" : " unevenly", padding ? " with padding" : "");
  }
};

Experts random_experts(std::uint64_t seed, const Mesh& mesh, Transformer& model) {
  RandomStream random(seed, "experts");
  model.moe = MixtureOfExperts{.experts = 8, .experts_per_token = 2, .expert_hidden = model.ffn_hidden / 2};
  std::int64_t ep = one_of(random, {1, 2, 4, 8});
  while (ep > mesh.tp && mesh.hdp % (ep / mesh.tp) != 0) ep /= 2;
  Experts drawn{.layout = {.ep = ep}, .padding = random.below(3) == 0};
  if (random.below(2) == 0) drawn.layout.shares = zipf_shares(*model.moe, random.uniform(), seed);
  if (random.below(3) == 0) drawn.layout.capacity_factor = 1.25;
  const ExpertDivision cut{ep, 2};
  const bool fits = mesh.tp % 2 == 0 && mesh.hdp % expert_ranks(cut, mesh.tp) == 0;
  if (ep > 1 && fits && RandomStream(seed, "cut experts").below(2) == 0) drawn.layout.etp = 2;
  return drawn;
}

// Every layer but the last of a period has a window or chunks, or mixes tokens in linear time.
std::string random_kinds(std::uint64_t seed, Transformer& model) {
  RandomStream random(seed, "kinds of layers");
  Layer other = model;
  const std::uint64_t kind = random.below(3);
  if (kind == 0) other.window = one_of(random, {128, 1024, 4096});
  if (kind == 1) other.attention_chunk = one_of(random, {1024, 8192});
  if (kind == 2) {
    other.heads = other.kv_heads = other.head_dim = 0;
    other.linear = LinearMixing{.heads = model.heads,
                                .key_heads = model.heads,
                                .key_dim = 128,
                                .value_dim = 128,
                                .chunk = 128,
                                .inputs = 4 * model.hidden,
                                .delta_rule = random.below(2) == 0};
  }
  const std::int64_t period = one_of(random, {2, 4, 6});
  std::vector<Layer> layers;
  for (std::int64_t i = 0; i < model.layers; ++i) layers.push_back((i + 1) % period == 0 ? Layer(model) : other);
  set_layers(model, layers);
  const char* const names[] = {"windows", "chunks", "linear layers"};
  return fmt::format(", {} but for every layer in {}", names[kind], period);
}

// An indexer in every layer of a period's begin; the others take its choice.
std::string random_indexer(std::uint64_t seed, Transformer& model) {
  RandomStream random(seed, "indexers");
  model.latent = LatentAttention{.query_rank = 768, .kv_rank = one_of(random, {256, 512}), .rotated = 64};
  model.indexer = KeyIndexer{
      .heads = one_of(random, {8, 32}), .head_dim = one_of(random, {64, 128}), .keys = one_of(random, {512, 2048})};
  Layer sharing = model;
  sharing.indexer = KeyIndexer{.heads = 0, .head_dim = 0, .keys = model.indexer->keys};
  const std::int64_t period = one_of(random, {1, 4});
  std::vector<Layer> layers;
  for (std::int64_t i = 0; i < model.layers; ++i) layers.push_back(i % period == 0 ? Layer(model) : sharing);
  set_layers(model, layers);
  return fmt::format(", {} chosen keys in one layer of {}", model.indexer->keys, period);
}

struct Pipelines {
  std::int64_t stages = 1;
  PipelineOptions options = {};
  [[nodiscard]] std::string text() const {
    return stages == 1 ? "" : fmt::format(", {} stages {}", stages, options.schedule);
  }
};

// 2 or 4 stages, as many as the cluster's shards can be; some of one where it has a single one.
Pipelines random_pipelines(std::uint64_t seed, std::int64_t shards) {
  RandomStream random(seed, "pipelines");
  std::int64_t stages = one_of(random, {2, 4});
  while (shards % stages != 0) stages /= 2;
  if (stages == 1) return {};
  const std::vector<PipelineOptions> schedules = test::every_schedule(stages);
  return {stages, schedules[random.below(schedules.size())]};
}

// One of three, each of which is read once.
const DeviceProfile& shipped_profile(std::uint64_t number) {
  static const auto profiles = [] {
    std::vector<DeviceProfile> read;
    for (const char* name : {"bytescale-implied", "h100-published", "h200-published"}) {
      Diagnostics problems;
      const auto profile = load_profile(name, HDPSIM_SOURCE_DIR "/calib/profiles", {}, problems);
      problems.throw_if_any();
      read.push_back(*profile);
    }
    return read;
  }();
  return profiles.at(number);
}

// Nothing if two jobs do not fit the random cluster.
std::optional<Times> simulate_random_study(std::uint64_t seed, const Choice& choice) {
  RandomStream random(seed, "grains agree");
  ClusterSpec cluster = random_cluster(random);
  if (choice.two_jobs && cluster.nodes() == 1) return std::nullopt;
  const std::string fabric = choice.other_fabrics ? change_fabric(cluster, seed) : "";
  Transformer model = random_model(random);
  const std::string kinds = choice.kinds     ? random_kinds(seed, model)
                            : choice.indexed ? random_indexer(seed, model)
                                             : "";
  const Recipe shared_keys{.key_exchange = choice.indexed ? KeyExchange::all_gather : KeyExchange::ring};
  const std::int64_t tp = one_of(random, {1, 2});
  DeviceProfile profile = shipped_profile(random.below(3));
  profile.connections = choice.communication.costs;
  profile.overheads.compute_beside_communication = choice.communication.beside;
  Diagnostics problems;

  Pipelines pipelines = choice.pipelines ? random_pipelines(seed, cluster.devices / tp) : Pipelines{};
  if (choice.chunks) pipelines.options = {};
  const std::int64_t pp = pipelines.stages;
  const auto job_on = [&](const NodeList& nodes) {
    return DrawnJob{.mesh = {.hdp = nodes.devices(cluster) / (tp * pp), .tp = tp, .pp = pp}, .nodes = nodes};
  };
  DrawnJob main = job_on(choice.two_jobs ? half_of(cluster, 0) : NodeList{});
  const Experts experts = choice.experts ? random_experts(seed, main.mesh, model) : Experts{};
  main.mesh.ep = experts.layout.ep;
  main.mesh.etp = experts.layout.etp;
  const auto world = World::make(cluster, profile,
                                 {.mesh = main.mesh,
                                  .nodes = main.nodes,
                                  .connections = choice.communication.connections,
                                  .ring_nics = choice.all_nics ? NicUse::all : NicUse::own},
                                 problems);
  problems.throw_if_any();
  Capacity capacity{one_of(random, {2048, 4096, 8192}), 0};
  capacity.contexts = one_of(random, {1, 2, 4});
  const std::int64_t padding = experts.padding ? capacity.tokens : 0;
  if (choice.token_wise)
    main.policy = seed % 2 == 0 ? "hdp-balance: {offload: token-wise}" : "hdp-naive: {offload: token-wise}";
  if (choice.chunks) main.policy = seed % 2 == 0 ? "chunkflow" : "chunkflow: {kept_chunks: 2}";
  if (choice.served) main.policy = seed % 2 == 0 ? "distca" : "distca: {tolerance: 0.5}";
  main = random_job(random, seed, model, capacity, std::move(main), world->job(), experts.layout, padding, shared_keys);
  const Plan plan = main.plan(0);
  LoweringOptions lowering{model, main.mesh, {.dkv_bytes_per_element = one_of(random, {2, 4})}};
  lowering.recipe.key_exchange = shared_keys.key_exchange;
  lowering.pipeline = pipelines.options;
  lowering.experts = experts.layout;
  if (choice.recomputes) lowering.recipe.recompute = random.below(2) == 0 ? Recompute::selective : Recompute::full;
  const Program program(plan, lowering);

  Background background;
  DrawnJob other;
  if (choice.two_jobs) {
    other = job_on(half_of(cluster, 1));
    REQUIRE(world->add_neighbour({.mesh = other.mesh, .nodes = other.nodes}, problems));
    Job& beside = world->neighbour(0);
    other = random_job(random, seed + studies_of_grains, model, capacity, std::move(other), beside);
    background.jobs.push_back({"the neighbour",
                               &beside.machine(),
                               {model, other.mesh, {.dkv_bytes_per_element = lowering.recipe.dkv_bytes_per_element}},
                               [&other](std::int64_t step) { return other.plan(step); }});
  }
  const auto step = [&](Grain grain) {
    return choice.two_jobs ? simulate(program, world->machine(), grain, background)
                           : simulate_checked(program, world->machine(), grain);
  };
  const bool shared = cluster.devices_per_nic() > 1 || cluster.tiers[0].oversubscription > 1;
  return Times{
      step(Grain::fluid).step_time, step(Grain::exact).step_time,
      fmt::format("{} on {} nodes of {}, tp {}, {} layers, {} slow devices{}{}{}{}{}{}", main.policy, cluster.nodes(),
                  cluster.devices_per_node, tp, model.layers, cluster.speed.size(), shared ? ", shared links" : "",
                  fabric, pipelines.text(), experts.text(), kinds, choice.two_jobs ? ", beside " + other.policy : "")};
}

// The study of `seed` with nothing chosen, once for all tests.
const Times& plain_times(std::uint64_t seed) {
  static std::map<std::uint64_t, Times> known;
  const auto found = known.find(seed);
  if (found != known.end()) return found->second;
  return known.emplace(seed, *simulate_random_study(seed, {})).first->second;
}

struct Compared {
  int studies = 0;
  int apart = 0;  ///< By more than 2 %.
};

// Simulates all studies, none of which may differ by more than `most`.
template <class TimesOf>
Compared compare_times(const char* tag, const TimesOf& times_of, double most, std::uint64_t studies) {
  double worst = 0;
  Compared compared;
  for (const std::uint64_t seed : tests::seeds(studies)) {
    INFO("replay: HDPSIM_SEED=" << seed << " test_property [" << tag << "]");
    const std::optional<Times> times = times_of(seed);
    if (!times) continue;
    const double difference = times->difference();
    worst = std::max(worst, std::abs(difference));
    ++compared.studies;
    if (std::abs(difference) > tolerance) ++compared.apart;
    INFO(times->setting << ": fluid " << times->fluid.seconds() << " s, exact " << times->exact.seconds()
                        << " s, difference " << 100 * difference << " %");
    CHECK(std::abs(difference) <= most);
  }
  WARN("largest difference over " << compared.studies << " studies: " << 100 * worst << " %, more than 2 % in "
                                  << compared.apart);
  return compared;
}

Compared compare_grains(const char* tag, const Choice& choice, double most, std::uint64_t studies = studies_of_grains) {
  return compare_times(
      tag, [&](std::uint64_t seed) { return simulate_random_study(seed, choice); }, most, studies);
}

// Of 240 such studies two are further apart, by 4.5 % at most: rings with two slow devices that share links.
TEST_CASE("fluid and exact nearly always agree within 2 % on random small studies", "[grains]") {
  const Compared compared = compare_times("grains", plain_times, 0.05, studies_of_grains);
  CHECK(compared.apart <= 2);
}

// Of 240 such studies six are further apart, by 3.3 % at most (micro-batches that offload); of 3,000, 1.1 % are, the
// worst by 9.3 %, which is not explained.
TEST_CASE("fluid and exact nearly always agree within 2 % where tokens travel to experts", "[grains experts]") {
  const Compared compared = compare_grains("grains experts", {.experts = true}, 0.04);
  CHECK(compared.apart <= 6);
}

TEST_CASE("fluid and exact nearly always agree within 2 % in pipelines of every schedule", "[grain pipelines]") {
  const Compared compared = compare_grains("grain pipelines", {.pipelines = true}, tolerance_in_pipelines);
  if (compared.studies > 1) CHECK(compared.apart <= std::ceil(most_outliers_in_pipelines * compared.studies));
}

// Of 240 such studies three are further apart, the worst by 3.3 %.
TEST_CASE("fluid and exact nearly always agree within 2 % where layers are of two kinds", "[grains kinds]") {
  const Compared compared = compare_grains("grains kinds", {.kinds = true}, 0.04);
  CHECK(compared.apart <= 3);
}

TEST_CASE("fluid and exact agree within 2 % where queries choose among gathered keys", "[grains indexed]") {
  CHECK(compare_grains("grains indexed", {.pipelines = true, .indexed = true}, tolerance).apart == 0);
}

// Of 240 such studies two are further apart, the worst by 4.7 %: rings with two slow devices.
TEST_CASE("fluid and exact nearly always agree within 2 % where activations are computed again", "[grains recompute]") {
  const Compared compared = compare_grains("grains recompute", {.recomputes = true}, 0.05);
  CHECK(compared.apart <= 2);
}

TEST_CASE("fluid and exact agree within 2 % where tokens are split between host and recomputation", "[grains split]") {
  CHECK(compare_grains("grains split", {.token_wise = true}, tolerance).apart == 0);
}

// Of 120 such studies seven are further apart, the worst by 5.8 %; of 3,000, 3.3 % are, the worst by 11.4 %: in nodes
// whose NVLink is little faster than their NICs, parts of messages on their way through a device meet the rings of the
// node.
TEST_CASE("fluid and exact nearly always agree within 2 % where rings use all NICs of a node", "[grains nics]") {
  const Compared compared = compare_grains("grains nics", {.all_nics = true}, 0.08, studies_of_grains / 2);
  CHECK(compared.apart <= 7);
}

TEST_CASE("fluid and exact agree within 2 % where chunks of sequences run in order", "[grains chunks]") {
  CHECK(compare_grains("grains chunks", {.pipelines = true, .chunks = true}, tolerance).apart == 0);
}

TEST_CASE("fluid and exact agree within 2 % where ranks attend for each other", "[grains served]") {
  CHECK(compare_grains("grains served", {.pipelines = true, .served = true}, tolerance).apart == 0);
}

TEST_CASE("fluid and exact nearly always agree within 2 % beside another job", "[grains beside]") {
  const Compared compared = compare_grains("grains beside", {.two_jobs = true}, tolerance_beside);
  if (compared.studies > 1) CHECK(compared.apart <= std::ceil(most_outliers_beside * compared.studies));
}

// Of 3,000 such studies 1.0 % are further apart, the worst by 6.5 %. Where that is understood, a slow device makes the
// hops of its ring use a link one after the other that the fluid grain has them use together.
TEST_CASE("fluid and exact agree over every fabric, over PCIe and with degraded links", "[grain fabrics]") {
  constexpr int exceptions = 5;
  CHECK(compare_grains("grain fabrics", {.other_fabrics = true}, 0.05).apart <= exceptions);
}

TEST_CASE("cold steps and kernels that messages slow part fluid and exact by less than 2 %, on average by 0.1 %",
          "[grains]") {
  double worst = 0;
  double sum = 0;
  std::uint64_t slowed = 0;  // the others have rings of one rank alone
  const auto seeds = tests::seeds(studies_of_grains);
  for (const std::uint64_t seed : seeds) {
    const Communication communication = random_communication(seed);
    const Times& plain = plain_times(seed);
    const Times times = *simulate_random_study(seed, {.communication = communication});
    const double change = times.difference() - plain.difference();
    worst = std::max(worst, std::abs(change));
    sum += std::abs(change);
    INFO(times.setting << ", " << communication.text() << ": fluid " << plain.fluid.seconds() << " -> "
                       << times.fluid.seconds() << " s, exact " << plain.exact.seconds() << " -> "
                       << times.exact.seconds() << " s, the difference changes by " << 100 * change << " %");
    INFO("replay: HDPSIM_SEED=" << seed << " test_property [grains]");
    CHECK(std::abs(change) <= tolerance);
    slowed += times.exact > plain.exact ? 1 : 0;
  }
  const double mean = sum / static_cast<double>(seeds.size());
  if (!tests::one_seed()) {
    CHECK(slowed > seeds.size() / 2);
    CHECK(mean <= tolerance_of_mean_change);
  }
  WARN("largest change over " << seeds.size() << " studies: " << 100 * worst << " %, on average " << 100 * mean
                              << " %; " << slowed << " are slower");
}

}  // namespace
}  // namespace hdpsim
