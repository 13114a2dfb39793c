#include <optional>
#include <string>

#include "sim/engine/simulator.h"
#include "sim/plan/expert_waves.h"
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

constexpr std::int64_t expert_layers = 3;
constexpr Duration exchange = 5_us;
constexpr Duration sync = 7_us;

// Two experts on two ranks, one of them a token.
Transformer two_experts() {
  Transformer model = one_head_model(expert_layers);
  model.moe = MixtureOfExperts{.experts = 2, .experts_per_token = 1, .expert_hidden = 128};
  return model;
}

// Work alone counts, a picosecond a multiply-add.
class WorkCosts final : public CostModel {
 public:
  [[nodiscard]] Estimate gemm(const Gemm& op) const override {
    return {Duration::picoseconds(op.m * op.n * op.k), Evidence::measured};
  }
  [[nodiscard]] Estimate memory_bound(const MemoryBound&) const override { return {}; }
  [[nodiscard]] Estimate attention(const Attention&) const override { return {}; }
  [[nodiscard]] std::int64_t kernels(const Attention& op) const override { return flash_attention_kernels(op); }
};

Timeline run_experts(const Plan& plan, Grain grain, const std::vector<double>& shares = {},
                     std::unique_ptr<CostModel> costs = std::make_unique<HandCosts>(1_us)) {
  HandMachine world(one_device_nodes(plan.ranks, 1_GBps), std::move(costs));
  world.machine.experts = test::each_takes(exchange);
  world.machine.expert_pools = test::each_takes(sync);
  LoweringOptions options{two_experts(), Mesh{.hdp = plan.ranks, .ep = 2}};
  options.experts = {.ep = 2, .shares = shares};
  const Program program(plan, options);
  Timeline timeline = simulate(program, world.machine, grain);
  for (const Breakdown& rank : timeline.ranks) CHECK(rank.total() == timeline.step_time);
  return timeline;
}

// Of a layer forward: QKV, output and router, two products of the rank's expert; backward twice as many; and the head's
// three. Two exchanges forward, two backward.
constexpr Duration linear = expert_layers * 3 * 5_us + 3_us;
constexpr Duration exchanges = expert_layers * 4 * exchange;

Duration attention_forward(std::int64_t tokens) {
  return Duration::picoseconds(tokens * (tokens + 1) / 2);
}

// Of a micro-batch, forward and twice as long backward.
Duration wave(std::int64_t tokens) {
  return linear + exchanges + expert_layers * 3 * attention_forward(tokens);
}

TEST_CASE("a rank without a micro-batch computes its experts for the other and waits for the rest", "[experts]") {
  const Plan plan = in_expert_waves(plan_of(2, expert_layers, {{{0}, 1000}}), 2, 0);
  for (const Grain grain : all_grains) {
    const Timeline timeline = run_experts(plan, grain);
    CHECK(timeline.step_time == wave(1000) + 2 * sync);
    CHECK(timeline.ranks[0][Activity::group_wait] == Duration{});
    CHECK(timeline.ranks[0][Activity::tp_comm] == exchanges);
    CHECK(timeline.ranks[0][Activity::grad_sync] == 2 * sync);
    CHECK(timeline.ranks[1][Activity::linear] == expert_layers * 3 * 2_us);
    CHECK(timeline.ranks[1][Activity::tp_comm] == exchanges);
    CHECK(timeline.ranks[1][Activity::attention] == Duration{});
    CHECK(timeline.ranks[1][Activity::group_wait] == wave(1000) - expert_layers * 3 * 2_us - exchanges);
  }
}

TEST_CASE("padding costs what its tokens cost", "[experts]") {
  const Plan plan = in_expert_waves(plan_of(2, expert_layers, {{{0}, 1000}}), 2, 2000);
  for (const Grain grain : all_grains) {
    const Timeline timeline = run_experts(plan, grain);
    CHECK(timeline.step_time == wave(2000) + 2 * sync);
    CHECK(timeline.ranks[1][Activity::attention] == expert_layers * 3 * attention_forward(2000));
  }
}

// Without experts each rank would take as long as both of its own micro-batches. In waves each takes as long as the
// longer of two. But behind its last exchange a rank is alone: it begins its next micro-batch while the other one still
// is in the last attention, so that the longer forward of the first layer hides behind that.
TEST_CASE("two ranks that run a long and a short micro-batch in turn take two long ones", "[experts]") {
  const Plan plan =
      in_expert_waves(plan_of(2, expert_layers, {{{0}, 2000}, {{1}, 1000}, {{0}, 1000}, {{1}, 2000}}), 2, 0);
  const Duration hidden = attention_forward(2000) - attention_forward(1000);
  for (const Grain grain : all_grains) {
    CHECK(run_experts(plan, grain).step_time == 2 * wave(2000) - hidden + 2 * sync);
  }
}

TEST_CASE("the device with the popular experts sets the pace, and the others' time is a wait", "[experts]") {
  constexpr std::int64_t tokens = 1000;
  const Plan plan = in_expert_waves(plan_of(2, expert_layers, {{{0}, tokens}, {{1}, tokens}}), 2, 0);
  // As many rows as a rank has tokens if all is even; a gate, an up and a down product of them, and twice that back.
  const Duration even = expert_layers * 3 * Duration::picoseconds(tokens * 3 * 64 * 128);
  for (const Grain grain : all_grains) {
    const Timeline uniform = run_experts(plan, grain, {}, std::make_unique<WorkCosts>());
    const Timeline skewed = run_experts(plan, grain, {0.75, 0.25}, std::make_unique<WorkCosts>());
    CHECK(skewed.step_time == uniform.step_time + even.scaled(0.5));
    for (const Breakdown& rank : skewed.ranks) {
      CHECK(rank[Activity::group_wait] == even.scaled(0.5));
      CHECK(rank[Activity::linear] == uniform.ranks[0][Activity::linear]);
    }
  }
}

// A picosecond a multiply-add and a byte.
class WorkAndBytes final : public CostModel {
 public:
  [[nodiscard]] Estimate gemm(const Gemm& op) const override {
    return {Duration::picoseconds(op.m * op.n * op.k), Evidence::measured};
  }
  [[nodiscard]] Estimate memory_bound(const MemoryBound& op) const override {
    return {Duration::picoseconds(op.traffic.count()), Evidence::measured};
  }
  [[nodiscard]] Estimate attention(const Attention&) const override { return {}; }
  [[nodiscard]] std::int64_t kernels(const Attention& op) const override { return flash_attention_kernels(op); }
};

Timeline compressed(Grain grain, const std::optional<ExpertCompression>& compression) {
  const Plan plan = in_expert_waves(plan_of(2, expert_layers, {{{0}, 1000}, {{1}, 500}}), 2, 0);
  HandMachine world(one_device_nodes(2, 1_GBps), std::make_unique<WorkAndBytes>());
  world.machine.experts = test::each_moves_at(1_GBps);
  world.machine.expert_pools = test::each_takes(sync);
  LoweringOptions options{two_experts(), Mesh{.hdp = 2, .ep = 2}};
  options.experts = {.ep = 2, .shares = {0.6, 0.4}, .compression = compression};
  return simulate(Program(plan, options), world.machine, grain);
}

TEST_CASE("compression that leaves every copy and costs nothing changes nothing", "[experts]") {
  for (const Grain grain : all_grains) {
    const Timeline plain = compressed(grain, std::nullopt);
    const Timeline same = compressed(grain, ExpertCompression{.rate = 1, .columns = 64, .is_free = true});
    CHECK(same.step_time == plain.step_time);
    REQUIRE(same.ranks.size() == plain.ranks.size());
    for (std::size_t rank = 0; rank < plain.ranks.size(); ++rank) {
      for (const Activity activity : all_activities) {
        CHECK(same.ranks[rank][activity] == plain.ranks[rank][activity]);
      }
    }
  }
}

TEST_CASE("a step is longer with each cluster more and with each hash more", "[experts]") {
  for (const Grain grain : all_grains) {
    Duration before;
    for (const double rate : {0.01, 0.1, 0.2, 0.5, 0.9, 1.0}) {
      const Duration now = compressed(grain, ExpertCompression{.rate = rate, .columns = 64}).step_time;
      CHECK(now > before);
      before = now;
    }
    before = compressed(grain, ExpertCompression{.rate = 0.2, .hashes = 1, .columns = 64, .is_free = true}).step_time;
    for (const std::int64_t hashes : {1, 2, 6, 10}) {
      const Duration now = compressed(grain, ExpertCompression{.rate = 0.2, .hashes = hashes, .columns = 64}).step_time;
      CHECK(now > before);
      before = now;
    }
  }
}

TEST_CASE("free compression takes its share off every exchange", "[experts]") {
  const auto exchanged = [](const std::optional<ExpertCompression>& compression) {
    return compressed(Grain::fluid, compression).ranks[0][Activity::tp_comm];
  };
  // The first rank sends 1,000 copies, or 100 means, and the fullest expert gets fewer.
  CHECK(exchanged(ExpertCompression{.rate = 0.1, .is_free = true}) * 10 == exchanged(std::nullopt));
}

TEST_CASE("waves of a pipeline end in every schedule, and no stage of an expert group runs ahead", "[experts]") {
  const Plan plan = in_expert_waves(
      plan_of(4, expert_layers, {{{0}, 1000}, {{0}, 1000}, {{1, 2}, 4000}, {{3}, 500}, {{3}, 700}, {{3}, 900}}), 2, 0);
  for (const std::string_view schedule : {"1f1b", "gpipe", "zb-h1"}) {
    std::vector<Duration> times;
    for (const Grain grain : all_grains) {
      HandMachine world(one_device_nodes(8, 1_GBps), std::make_unique<HandCosts>(1_us), 2);
      world.machine.experts = test::each_takes(exchange);
      world.machine.expert_pools = test::each_takes(sync);
      LoweringOptions options{two_experts(), Mesh{.hdp = 4, .pp = 2, .ep = 2}};
      options.experts.ep = 2;
      options.pipeline.schedule = schedule;
      const Program program(plan, options);
      const Timeline timeline = simulate(program, world.machine, grain);
      for (const Breakdown& rank : timeline.ranks) CHECK(rank.total() == timeline.step_time);
      times.push_back(timeline.step_time);
    }
    CHECK(times[1].seconds() == Approx(times[0].seconds()).epsilon(0.1));
  }
}

}  // namespace
}  // namespace hdpsim
