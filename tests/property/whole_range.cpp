// Every number that a study may state, from the least to the most that its range allows: a step is simulated, with a
// time, a breakdown and a utilisation that can be, or the study is refused as wrong input. Never a failed check.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/random.h"
#include "sim/run/step.h"
#include "sim/study/study.h"
#include "tests/support/catch.h"
#include "tests/support/seeds.h"

namespace hdpsim {
namespace {

constexpr std::uint64_t combinations = 120;  // of three keys each
constexpr std::uint64_t studies = 12;        // for each law

constexpr char small_study[] = R"(name: small
cluster:
  preset: a100-rail-3tier
  gpus: 16
model: {preset: llama-7b, num_hidden_layers: 4}
profile: bytescale-implied
data: {lengths: {fixed: 4Ki}, context: 8Ki, tokens_per_step: 64Ki, steps: 1}
mesh: {tp: 2, capacity: 4Ki}
plans: [static: {cp: 2}, hdp-balance: {offload: auto}]
)";

constexpr char small_mixture[] = R"(name: small
cluster:
  preset: a100-rail-3tier
  gpus: 16
model: {preset: mixtral-8x7b, num_hidden_layers: 4}
profile: bytescale-implied
data: {lengths: {fixed: 4Ki}, context: 4Ki, tokens_per_step: 64Ki, steps: 1}
mesh: {tp: 2, ep: 2, capacity: 4Ki}
plans: [static: {cp: 1}]
)";

/// One number of a study: how to write it, and the range that the documentation states.
struct Key {
  std::string text;  ///< With {} for the number.
  double least;
  double most;
  bool whole = false;
};

std::vector<Key> keys_of_study() {
  constexpr double slowest = 1e6;
  constexpr double fastest = 1e15;
  constexpr double second = 1e12;
  std::vector<Key> keys = {
      {"cluster.node.gpu_memory={} B", 1e6, 1e15, true},
      {"cluster.node.host_memory={} B", 1e6, 1e15, true},
      {"cluster.node.nvlink.bandwidth={} B/s", slowest, fastest, true},
      {"cluster.node.nvlink.latency={} ps", 0, second, true},
      {"cluster.node.nics.bandwidth={} B/s", slowest, fastest, true},
      {"cluster.node.pcie.bandwidth={} B/s", slowest, fastest, true},
      {"cluster.tiers.tor.latency={} ps", 0, second, true},
      {"cluster.tiers.tor.oversubscription={}", 1, 1000},
      {"cluster.tiers.tor.fan_in={}", 1, 1048576, true},
      {"cluster.compute_capability={}", 1, 100},
      {"cluster.speed={{0-15: {}}}", 0.001, 1000},
      {"cluster.speed={{3: {}}}", 0.001, 1000},
      {"cluster.links={{node 0 nic 1: {}}}", 0.001, 1},
      {"model.num_hidden_layers={}", 1, 10000, true},
      {"model.hidden_size={}", 1, 1e6, true},
      {"model.intermediate_size={}", 1, 1e7, true},
      {"model={{preset: llama-7b, num_attention_heads: {0}, num_key_value_heads: {0}}}", 1, 1e5, true},
      {"model.vocab_size={}", 1, 1e7, true},
      {"data.steps={}", 1, 1e6, true},
      {"data.seed={}", 0, 9e15, true},
      {"data.context={}", 1, 1073741824, true},
      {"mesh.tp={}", 1, 65536, true},
      {"mesh.pp={}", 1, 65536, true},
      {"mesh.capacity={}", 1, 1073741824, true},
      {"mesh.zero={}", 0, 3, true},
      {"memory.fragmentation={}", 0, 1},
      {"memory.reserve={} B", 0, 1e15, true},
      {"overheads.per_step={} s", 0, 3600},
      {"overheads.per_micro_batch={} s", 0, 3600},
      {"faults=[{{device: 3, slowdown: {}}}]", 1, 1000},
      {"noise.device.cv={}", 0, 1},
      {"noise.step.cv={}", 0, 1},
      {"uncertainty.errors.gemm={}", 0, 1},
      {"uncertainty.slow_nodes.share={}", 0, 1},
      {"loading={{style: spmd, bytes_per_token: {} B}}", 1, 1e9, true},
      {"loading={{style: remote, bytes_per_token: 4 B, storage: {} B/s}}", slowest, fastest, true},
      {"loading={{style: remote, bytes_per_token: 4 B, network: {} B/s}}", slowest, fastest, true},
      {"loading={{style: spmd, bytes_per_token: 4 B, tokens_per_s: {}}}", 1, 1e15, true},
      {"loading={{style: spmd, bytes_per_token: 4 B, tokens_per_s: 1, processes: {}}}", 1, 1e7, true},
      {"loading={{style: spmd, bytes_per_token: 4 B, prefetch: {}}}", 0, 1000, true},
      {"loading={{style: remote, bytes_per_token: 4 B, planner: {} s}}", 0, 3600},
      {"loading={{style: actors, bytes_per_token: 4 B, sources: [{{name: a, count: {}, sample: 1 s}}]}}", 1, 1e5, true},
      {"loading={{style: actors, bytes_per_token: 4 B, sources: [{{name: a, access: {} B}}]}}", 0, 1e15, true},
      {"loading={{style: actors, bytes_per_token: 4 B, sources: [{{name: a, sample: {} s}}]}}", 0, 3600},
      {"loading={{style: actors, bytes_per_token: 4 B, connection: {} s, sources: [{{name: a}}]}}", 0, 3600},
      {"loading={{style: actors, bytes_per_token: 4 B, planner_sample: {} s, sources: [{{name: a}}]}}", 0, 3600},
      {"loading={{style: actors, bytes_per_token: 4 B, sources: [{{name: a, sample: 1 s}}], deaths: {{mtbf: {} s}}}}",
       60, 3.1536e10},
      {"plans=[hdp-balance: {{buckets: {}}}]", 1, 1e6, true},
      {"plans=[hdp-balance: {{delta: {}}}]", 1e-4, 1},
  };
  return keys;
}

std::vector<Key> keys_of_mixture() {
  return {{"model.num_local_experts={}", 0, 1e5, true},
          {"model.num_experts_per_tok={}", 1, 1000, true},
          {"moe.capacity_factor={}", 0.01, 1e5},
          {"moe.routing={{zipf: {}}}", 0, 100},
          {"mesh.ep={}", 1, 16777216, true}};
}

std::string written(const Key& key, double value) {
  const std::string number = key.whole ? fmt::format("{}", std::llround(value)) : fmt::format("{:.9g}", value);
  return fmt::format(fmt::runtime(key.text), number);
}

// As likely in every decade of the range.
double anywhere(const Key& key, RandomStream& random) {
  const double least = std::max(key.least, key.most * 1e-15);
  return std::clamp(least * std::pow(key.most / least, random.uniform()), key.least, key.most);
}

class Small {
 public:
  /// Nothing if the study is refused as wrong input; the reason is then in refusal().
  std::optional<Study> load(const char* text, const std::vector<std::string>& overrides) {
    try {
      return parse_study("small.yaml", text, overrides, catalog_);
    } catch (const InputError& error) {
      refusal_ = error.what();
      return std::nullopt;
    }
  }
  std::optional<SimulatedStep> step(const Study& study, std::size_t plan) {
    try {
      const auto world = study.points[0].make_world();
      return simulate_step(study.points[0], plan, 0, *world);
    } catch (const InputError& error) {
      refusal_ = error.what();
      return std::nullopt;
    }
  }
  [[nodiscard]] const std::string& refusal() const { return refusal_; }

 private:
  Catalog catalog_{HDPSIM_SOURCE_DIR};
  std::string refusal_;
};

void check_possible(const SimulatedStep& step, const PointSpec& spec) {
  const StepResult& result = step.result;
  CHECK(result.time > Duration{});
  CHECK(result.mean.total() == result.time);
  for (const Activity activity : all_activities) CHECK(result.mean[activity] >= Duration{});
  for (const Breakdown& rank : step.ranks) {
    CHECK(rank.total() == result.time);
    for (const Activity activity : all_activities) CHECK(rank[activity] >= Duration{});
  }
  const double peak = mean_peak(spec.profile->datasheet.peak, spec.cluster, spec.nodes).per_second() *
                      static_cast<double>(spec.mesh.devices());
  const double mfu = result.model_flops / (peak * result.time.seconds());
  CHECK(mfu > 0);
  CHECK(mfu <= 1);
  constexpr double between_planner_and_engine = 1.02;
  CHECK(result.bound > Duration{});
  CHECK(result.bound.seconds() <= result.time.seconds() * between_planner_and_engine);
  CHECK(result.busy.min <= result.busy.mean);
  CHECK(result.busy.mean <= result.busy.max);
  CHECK(result.busy.max <= result.time);
  CHECK(result.memory.device > Bytes{});
}

// Whether the study was simulated.
bool check_point(Small& small, const char* text, const std::vector<std::string>& overrides) {
  std::string replay = "hdpsim study small.yaml";
  for (const std::string& override : overrides) replay += fmt::format(" --set '{}'", override);
  CAPTURE(replay);
  const auto study = small.load(text, overrides);
  if (!study) return false;
  bool simulated = false;
  for (std::size_t plan = 0; plan < study->plans.size(); ++plan) {
    const auto step = small.step(*study, plan);
    if (step) check_possible(*step, study->points[0].spec);
    simulated = simulated || step.has_value();
  }
  return simulated;
}

// A context needs sequences, and a step that holds them.
std::vector<std::string> with_company(const Key& key, double value) {
  std::vector<std::string> overrides = {written(key, value)};
  if (key.text.find("num_attention_heads") != std::string::npos) overrides.emplace_back("mesh.tp=1");
  if (!key.text.starts_with("data.context")) return overrides;
  const auto context = std::llround(value);
  overrides.push_back(fmt::format("data.lengths.fixed={}", context));
  overrides.push_back(fmt::format("data.tokens_per_step={}", 4 * context));
  overrides.push_back(fmt::format("mesh.capacity={}", (context + 1) / 2));
  return overrides;
}

void check_ends(Small& small, const char* text, const Key& key, RandomStream& random) {
  CAPTURE(key.text);
  int simulated = 0;
  std::vector<double> values = {key.least, key.most, anywhere(key, random), anywhere(key, random)};
  // Squares of the first are the least numbers that there are, and those of the others are nothing.
  if (!key.whole && key.least == 0) values.insert(values.end(), {1e-160, 1e-300, 5e-324});
  for (const double value : values) {
    if (check_point(small, text, with_company(key, value))) ++simulated;
  }
  CHECK(simulated > 0);  // else nothing was tried
  for (const double outside :
       {key.whole ? key.least - 1 : key.least * 0.99 - 1e-9, key.whole ? key.most + 1 : key.most * 1.01}) {
    const std::string override = written(key, outside);
    CAPTURE(override);
    CHECK_FALSE(small.load(text, {override}).has_value());
    CHECK_THAT(small.refusal(), Catch::Matchers::Contains("it must be "));
  }
}

}  // namespace

TEST_CASE("every number of a study, at both ends of its range and between, gives a step that can be or a refusal",
          "[property][range]") {
  Small small;
  RandomStream random(1, "values of one key");
  for (const Key& key : keys_of_study()) check_ends(small, small_study, key, random);
  for (const Key& key : keys_of_mixture()) check_ends(small, small_mixture, key, random);
}

TEST_CASE("three numbers of a study anywhere in their ranges give a step that can be or a refusal",
          "[property][range]") {
  Small small;
  const std::vector<Key> keys = keys_of_study();
  std::uint64_t drawn = 0;
  std::uint64_t simulated = 0;
  for (const std::uint64_t seed : tests::seeds(combinations)) {
    ++drawn;
    CAPTURE(fmt::format("replay: HDPSIM_SEED={} test_property '[range]'", seed));
    RandomStream random(seed, "values of three keys");
    std::vector<std::string> overrides;
    for (int i = 0; i < 3; ++i) {
      const Key& key = keys[random.below(keys.size())];
      for (std::string& override : with_company(key, anywhere(key, random))) overrides.push_back(std::move(override));
    }
    overrides.push_back(fmt::format("grain={}", std::vector{"fluid", "exact", "closed_form"}[random.below(2) * 2]));
    simulated += check_point(small, small_study, overrides) ? 1 : 0;
  }
  CHECK((simulated > drawn / 4 || tests::one_seed()));
}

namespace {

/// A study whose sizes are drawn from the seed; `changes` are made to it.
std::vector<std::string> random_sizes(std::uint64_t seed) {
  RandomStream random(seed, "sizes");
  const std::int64_t context = std::int64_t{2048} << random.below(5);
  return {fmt::format("data={{lengths: {{preset: github}}, context: {}, tokens_per_step: {}, steps: 1, seed: {}}}",
                      context, 8 * context, seed + 1),
          fmt::format("mesh={{tp: {}, capacity: {}}}", 1 << random.below(3), context / 2),
          fmt::format("model.num_hidden_layers={}", 2 + random.below(6)),
          fmt::format("cluster.node.nics.bandwidth={} Gbit/s", 25 << random.below(5))};
}

Duration time_of(const Study& study, const FamilyFactors& factors, const Batch& batch) {
  const StudyPoint& point = study.points[0];
  const Plan plan = make_plan(point, 0, 0, batch);
  const LoweringOptions lowering = point.lowering();
  const Program program(plan, lowering);
  const auto world = point.make_world(factors);
  return simulate_plan(program, *world, conditions_of(point)).step_time;
}

}  // namespace

TEST_CASE("twice the tokens never take a static mesh less time", "[property][law]") {
  Small small;
  for (const std::uint64_t seed : tests::seeds(studies)) {
    CAPTURE(seed);
    std::vector<std::string> overrides = random_sizes(seed);
    overrides.emplace_back("plans=[static]");
    const auto study = small.load(small_study, overrides);
    INFO(small.refusal());
    REQUIRE(study);
    const Batch once = study->points[0].batches->step(0);
    Batch twice = once;
    for (const Sequence& sequence : once.sequences) twice.sequences.push_back(sequence);
    CHECK(twice.tokens() == 2 * once.tokens());
    CHECK(time_of(*study, {}, twice) >= time_of(*study, {}, once));
  }
}

TEST_CASE("the order of sequences in a batch changes no step time", "[property][law]") {
  Small small;
  for (const std::uint64_t seed : tests::seeds(studies)) {
    CAPTURE(seed);
    const auto study = small.load(small_study, random_sizes(seed));
    INFO(small.refusal());
    REQUIRE(study);
    const Batch batch = study->points[0].batches->step(0);
    Batch turned = batch;
    std::reverse(turned.sequences.begin(), turned.sequences.end());
    CHECK(time_of(*study, {}, turned).seconds() == Approx(time_of(*study, {}, batch).seconds()).epsilon(1e-3));
  }
}

TEST_CASE("with every cost of the profile doubled a static mesh takes twice the time", "[property][law]") {
  Small small;
  FamilyFactors doubled;
  for (std::size_t family = 0; family < cost_families; ++family) doubled[static_cast<CostFamily>(family)] = 2;
  for (const std::uint64_t seed : tests::seeds(studies)) {
    CAPTURE(seed);
    std::vector<std::string> overrides = random_sizes(seed);
    for (const char* text : {"plans=[static]", "overheads={per_step: 0 s, per_micro_batch: 0 s}",
                             "cluster.tiers.tor.latency=0 s", "cluster.node.nvlink.latency=0 s"}) {
      overrides.emplace_back(text);
    }
    const auto study = small.load(small_study, overrides);
    INFO(small.refusal());
    REQUIRE(study);
    const Batch batch = study->points[0].batches->step(0);
    CHECK(time_of(*study, doubled, batch).seconds() == Approx(2 * time_of(*study, {}, batch).seconds()).epsilon(1e-3));
  }
}

}  // namespace hdpsim
