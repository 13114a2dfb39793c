// What planners take a micro-batch to cost and what the engine charges for it, under every mechanism of a framework
// that a study can name. The planners' coefficients are read off priced programs of a capacity and of four, so that no
// mechanism can be forgotten; between these sizes they are a straight line, where efficiencies of products are a curve.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/random.h"
#include "sim/engine/simulator.h"
#include "sim/model/group_sharing.h"
#include "sim/plan/expert_waves.h"
#include "sim/study/study.h"
#include "tests/support/catch.h"
#include "tests/support/seeds.h"
#include "tests/support/small_world.h"

namespace hdpsim {
namespace {

constexpr std::uint64_t recipes = 200;
constexpr std::int64_t capacity = 4096;
constexpr double exact = 0.01;    // at the sizes of the probes
constexpr double between = 0.07;  // between them: 6.0 % where products are cut into eight chunks
// Where passes gather or reduce whole experts, whose collectives are longer than their kernels: planners take a ring to
// hide of them what one rank hides. 15.3 % at most of these recipes.
constexpr double experts_in_pass = 0.16;

double in_the_recipes_way(const WorkModel& work, std::int64_t tokens, std::int64_t degree) {
  return work.seconds_in_this_way(causal_pairs(tokens), tokens, degree, false);
}

/// Values of one key, of which a recipe has one.
struct Mechanism {
  std::string_view key;
  std::vector<std::string_view> values;
};

const std::vector<Mechanism>& mechanisms() {
  static const std::vector<Mechanism> all = {
      {"mesh.tp", {"1", "2", "4", "8"}},
      {"training.recompute", {"none", "selective", "full", "[mlp]", "[norm, activation]", "[qkv, attention]"}},
      {"mesh.zero", {"0", "1", "2", "3"}},
      {"training.gradients", {"fp32", "bf16"}},
      {"training.gradient_accumulation_fusion", {"true", "false"}},
      {"training.separate_merge", {"true", "false"}},
      {"training.sequence_parallel", {"true", "false"}},
      {"training.tp_comm_overlap", {"true", "false"}},
      {"training.tp_gradient_overlap", {"true", "false"}},
      {"kernels.attention", {"flash", "unfused"}},
      {"kernels.linear", {"bf16", "fp8", "fp8_current", "fp8_blocks"}},
      {"kernels.launch", {"eager", "graphs"}},
      {"overheads.per_micro_batch", {"0 s", "2 ms"}},
      {"training.dropout", {"true", "false"}},
      {"training.activation_input", {"bf16", "fp8"}},
      {"training.moments", {"fp32", "bf16"}},
  };
  return all;
}

std::string drawn_recipe(RandomStream& random, std::vector<std::string>& overrides) {
  std::string text;
  for (const Mechanism& mechanism : mechanisms()) {
    if (random.below(2) == 0) continue;
    const std::string_view value = mechanism.values[random.below(mechanism.values.size())];
    overrides.push_back(fmt::format("{}={}", mechanism.key, value));
    text += fmt::format(" --set '{}'", overrides.back());
  }
  return text;
}

std::string study_of(RandomStream& random) {
  const bool has_experts = random.below(4) == 0;
  return fmt::format(R"(name: two nodes
cluster: {{preset: h100-rail, gpus: 16}}
model: {{preset: {}, num_hidden_layers: 6}}
profile: h100-published
data: {{lengths: {{fixed: 4Ki}}, context: 4Ki, tokens_per_step: 256Ki, steps: 1}}
mesh: {{capacity: {}{}}}
plans: [static: {{cp: 1}}]
)",
                     has_experts ? "mixtral-8x7b" : "llama-7b", capacity, has_experts ? ", tp: 2, ep: 2" : "");
}

/// The engine's seconds of a micro-batch: what a second one adds to a step.
class Engine {
 public:
  explicit Engine(const StudyPoint& point)
      : lowering_(point.lowering()),
        world_(point.make_world()),
        experts_(expert_ranks(lowering_.mesh.experts(), lowering_.mesh.tp)) {}

  /// Every rank has a sequence of its own.
  double alone(std::int64_t tokens) {
    std::vector<std::pair<std::vector<std::size_t>, std::int64_t>> wave;
    for (std::size_t rank = 0; rank < ranks(); ++rank) wave.push_back({{rank}, tokens});
    return second_of(wave);
  }
  /// The first ranks and the last one share a sequence.
  double on_ring(std::size_t degree, std::int64_t tokens) {
    std::vector<std::size_t> group(degree);
    std::iota(group.begin(), group.end(), std::size_t{0});
    group.back() = ranks() - 1;
    return second_of({{group, tokens}});
  }

  [[nodiscard]] std::size_t ranks() const { return static_cast<std::size_t>(lowering_.mesh.hdp); }
  [[nodiscard]] bool joins_ranks() const { return experts_ > 1; }

 private:
  using Wave = std::vector<std::pair<std::vector<std::size_t>, std::int64_t>>;

  double second_of(const Wave& wave) {
    Wave both = wave;
    both.insert(both.end(), wave.begin(), wave.end());
    return step(both) - step(wave);
  }

  double step(const Wave& micro_batches) {
    Plan plan = test::plan_of(lowering_.mesh.hdp, lowering_.model.layers, micro_batches);
    if (joins_ranks()) plan = in_expert_waves(std::move(plan), experts_, 0);
    return simulate(Program(plan, lowering_), world_->machine(), Grain::closed_form).step_time.seconds();
  }

  LoweringOptions lowering_;
  std::unique_ptr<World> world_;
  std::int64_t experts_;
};

// No value if two of the values exclude each other.
std::optional<Study> accepted(const std::string& text, const std::vector<std::string>& overrides, Catalog& catalog) {
  try {
    return parse_study("recipe.yaml", text, overrides, catalog);
  } catch (const InputError&) {
    return std::nullopt;
  }
}

/// How far the planners are from the engine, as a share of the engine's time.
double distance(double predicted, double measured) {
  return std::abs(predicted / measured - 1);
}

}  // namespace

TEST_CASE("planners take a micro-batch to cost what the engine charges for it, whatever the recipe", "[probes]") {
  const auto seeds = tests::seeds(recipes);
  Catalog catalog{HDPSIM_SOURCE_DIR};
  std::uint64_t compared = 0;
  for (const std::uint64_t seed : seeds) {
    RandomStream random(seed, "planner and engine");
    const std::string text = study_of(random);
    std::vector<std::string> overrides;
    const std::string recipe = drawn_recipe(random, overrides);
    INFO("replay: HDPSIM_SEED=" << seed << " test_property [probes]\n" << text << recipe);
    const std::optional<Study> study = accepted(text, overrides, catalog);
    if (!study) continue;
    ++compared;
    const WorkModel& work = study->points[0].work;
    Engine engine(study->points[0]);
    const PointSpec& spec = study->points[0].spec;
    const double least = spec.model.moe && spec.recipe.reduces_in_pass() ? experts_in_pass : 0;
    for (const auto& [tokens, limit] : {std::pair{capacity, exact}, {2 * capacity, between}, {4 * capacity, exact}}) {
      const double most = std::max(limit, least);
      CAPTURE(tokens);
      CHECK(distance(work.seconds(causal_pairs(tokens), tokens, 1), engine.alone(tokens)) < most);
      if (engine.joins_ranks()) continue;
      for (const std::size_t degree : {2U, 4U, 8U}) {
        if (engine.ranks() < degree) continue;
        CAPTURE(degree);
        const auto ranks = static_cast<std::int64_t>(degree);
        const std::int64_t all = ranks * tokens;
        CHECK(distance(in_the_recipes_way(work, all, ranks), engine.on_ring(degree, all)) < most);
      }
    }
  }
  CHECK((tests::one_seed() || compared > seeds.size() / 2));
}

TEST_CASE("planners know that scores of all keys grow with the area, and attention to chosen keys with the tokens",
          "[probes]") {
  Catalog catalog{HDPSIM_SOURCE_DIR};
  const std::string text = fmt::format(R"(name: chosen keys
cluster: {{preset: h100-rail, gpus: 16}}
model: {{preset: deepseek-v3.2, num_hidden_layers: 6, num_nextn_predict_layers: 0}}
profile: h100-published
data: {{lengths: {{fixed: 4Ki}}, context: 4Ki, tokens_per_step: 256Ki, steps: 1}}
mesh: {{capacity: {}, tp: 2, ep: 2, cp_comm_type: all_gather}}
plans: [static: {{cp: 1}}]
)",
                                       capacity);
  const Study study = parse_study("chosen.yaml", text, {}, catalog);
  const WorkModel& work = study.points[0].work;
  CHECK(work.per_area > 0);
  Engine engine(study.points[0]);
  for (const auto& [tokens, most] : {std::pair{capacity, exact}, {2 * capacity, between}, {4 * capacity, exact}}) {
    CAPTURE(tokens);
    CHECK(distance(work.seconds(causal_pairs(tokens), tokens, 1), engine.alone(tokens)) < most);
  }
}

// Four heads of the model share a key, so that backward's exchanges take longer than its attention.
TEST_CASE("planners know what a ring costs around which queries pass", "[probes]") {
  Catalog catalog{HDPSIM_SOURCE_DIR};
  const std::string text = fmt::format(R"(name: passing queries
cluster: {{preset: h100-rail, gpus: 16}}
model: {{preset: llama3-8b}}
profile: h100-published
data: {{lengths: {{fixed: 4Ki}}, context: 4Ki, tokens_per_step: 256Ki, steps: 1}}
mesh: {{capacity: {}, tp: 1, cp_comm_type: burst}}
plans: [static: {{cp: 1}}]
)",
                                       capacity);
  const Study study = parse_study("passing.yaml", text, {}, catalog);
  Engine engine(study.points[0]);
  for (const std::size_t degree : {2U, 4U, 8U}) {
    CAPTURE(degree);
    const auto ranks = static_cast<std::int64_t>(degree);
    const std::int64_t all = ranks * capacity;
    CHECK(distance(in_the_recipes_way(study.points[0].work, all, ranks), engine.on_ring(degree, all)) < exact);
  }
}

// What ranks gather or trade takes another share of the links in a node and between nodes for every shape of a group,
// of which planners know a few: the last rank of a group is on the other node here, the others mostly are not.
TEST_CASE("planners know what a group gathers or trades within a third, and within a tenth on average", "[probes]") {
  constexpr double most = 0.35;
  constexpr double mean = 0.1;
  Catalog catalog{HDPSIM_SOURCE_DIR};
  RandomStream random(1, "no experts");
  std::string text = study_of(random);
  while (text.find("mixtral") != std::string::npos) text = study_of(random);
  std::vector<double> distances;
  for (const std::string_view way : {"all_gather", "a2a", "group_cast"}) {
    for (const std::string_view tp : {"1", "2", "4"}) {
      const auto overrides = {fmt::format("mesh.cp_comm_type={}", way), fmt::format("mesh.tp={}", tp)};
      const Study study = parse_study("recipe.yaml", text, overrides, catalog);
      const WorkModel& work = study.points[0].work;
      Engine engine(study.points[0]);
      for (const std::size_t degree : {2U, 4U, 8U}) {
        if (engine.ranks() < degree) continue;
        const std::int64_t all = static_cast<std::int64_t>(degree) * capacity;
        const double predicted = in_the_recipes_way(work, all, static_cast<std::int64_t>(degree));
        distances.push_back(distance(predicted, engine.on_ring(degree, all)));
        CAPTURE(way, tp, degree);
        CHECK(distances.back() < most);
      }
    }
  }
  CHECK(std::accumulate(distances.begin(), distances.end(), 0.0) / static_cast<double>(distances.size()) < mean);
}

// Eight key-value heads of the model, divided by tp, are traded; the other ranks are in rings.
TEST_CASE("planners know rings that join ranks which trade heads within a fifth", "[probes]") {
  constexpr double most = 0.2;
  Catalog catalog{HDPSIM_SOURCE_DIR};
  for (const auto& [tp, degree] : {std::pair{1, 16U}, std::pair{2, 8U}, std::pair{4, 4U}}) {
    const std::string text = fmt::format(R"(name: rings of traders
cluster: {{preset: h100-rail, gpus: 16}}
model: {{preset: llama3-8b}}
profile: h100-published
data: {{lengths: {{fixed: 4Ki}}, context: 4Ki, tokens_per_step: 256Ki, steps: 1}}
mesh: {{capacity: {}, tp: {}, cp_comm_type: a2a}}
plans: [static: {{cp: 1}}]
)",
                                         capacity, tp);
    const Study study = parse_study("traders.yaml", text, {}, catalog);
    Engine engine(study.points[0]);
    const auto ranks = static_cast<std::int64_t>(degree);
    const std::int64_t all = ranks * capacity;
    const WorkModel& work = study.points[0].work;
    CAPTURE(tp, degree);
    REQUIRE(ranks_that_trade(ranks, 8 / tp, 0) == ranks / 2);
    CHECK(distance(in_the_recipes_way(work, all, ranks), engine.on_ring(degree, all)) < most);
  }
}

}  // namespace hdpsim
