// Several optimizer steps a batch (sim/plan/updates.h): each takes what a step with it alone takes.

#include "sim/plan/updates.h"

#include "sim/engine/simulator.h"
#include "tests/support/catch.h"
#include "tests/support/every_schedule.h"
#include "tests/support/small_world.h"

namespace hdpsim {
namespace {

using test::all_grains;
using test::HandCosts;
using test::HandMachine;
using test::one_device_nodes;
using test::plan_of;

constexpr std::int64_t layers_of_model = 4;

Transformer model() {
  return test::one_head_model(layers_of_model);
}

// Six micro-batches on three ranks; the last rank has none of its own in the first update.
std::vector<Plan> two_updates() {
  return {plan_of(3, layers_of_model, {{{0, 1}, 2048}, {{0}, 700}, {{1}, 300}}),
          plan_of(3, layers_of_model, {{{2}, 900}, {{1, 2}, 1024}, {{0}, 500}, {{0, 1}, 600}})};
}

/// The devices behind those of the first three ranks.
class BehindFirst final : public Placement {
 public:
  [[nodiscard]] DeviceId device(HdpRank rank, std::int64_t, std::int64_t) const override {
    return DeviceId(3 + rank.index());
  }
};

struct Setting {
  std::int64_t stages = 1;
  PipelineOptions pipeline = {};
  bool overlaps = false;
  std::optional<SetUpCosts> set_up = {};
};

Timeline run(const Plan& plan, const Setting& setting, Grain grain) {
  const Mesh mesh{.hdp = plan.ranks, .pp = setting.stages};
  HandMachine world(one_device_nodes(mesh.devices(), 1_GBps), std::make_unique<HandCosts>(1_us), setting.stages);
  world.machine.step_overhead = 70_us;
  world.machine.set_up = setting.set_up;
  world.machine.pool = [](CollectiveKind, Bytes bytes) { return Estimate{bytes / 1_GBps, Evidence::formula}; };
  LoweringOptions options{model(), mesh};
  options.recipe.zero = 1;
  options.recipe.overlap_grad_reduce = options.recipe.overlap_param_gather = setting.overlaps;
  options.pipeline = setting.pipeline;
  const Program program(plan, options);
  return simulate(program, world.machine, grain);
}

// The step of both updates is the two steps one after another: in time, by activity, in bytes, micro-batch by
// micro-batch and pass by pass.
void check_one_after_another(const Setting& setting, Grain grain) {
  const std::vector<Plan> updates = two_updates();
  const Timeline both = run(joined_updates(updates), setting, grain);
  const Timeline first = run(updates[0], setting, grain);
  const Timeline second = run(updates[1], setting, grain);
  CHECK(both.step_time == first.step_time + second.step_time);
  for (std::size_t w = 0; w < both.ranks.size(); ++w) {
    CHECK(both.ranks[w].total() == both.step_time);
    for (const Activity activity : all_activities) {
      CHECK(both.ranks[w][activity] == first.ranks[w][activity] + second.ranks[w][activity]);
    }
    CHECK(both.ranks[w][Activity::grad_sync] > Duration{});
  }
  for (std::size_t link = 0; link < both.links.bytes.size(); ++link) {
    const Bytes apart = first.links.bytes[link] + second.links.bytes[link];
    CHECK(std::abs((both.links.bytes[link] - apart).count()) <= 1);
  }
  const auto compare = [&](const auto& all, const auto& of_first, const auto& of_second) {
    REQUIRE(all.size() == of_first.size() + of_second.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool early = i < of_first.size();
      const MicroBatchInterval& alone = early ? of_first[i] : of_second[i - of_first.size()];
      const Duration later = early ? Duration{} : first.step_time;
      CHECK(all[i].begin == alone.begin + later);
      CHECK(all[i].end == alone.end + later);
    }
  };
  compare(both.micro_batches, first.micro_batches, second.micro_batches);
  compare(both.passes, first.passes, second.passes);
}

TEST_CASE("a plan of two updates takes as long as the two plans of one update one after another", "[engine][updates]") {
  for (const Grain grain : all_grains) {
    for (const bool overlaps : {false, true}) check_one_after_another({.overlaps = overlaps}, grain);
  }
}

TEST_CASE("a pipeline fills and drains in every update, whatever its schedule", "[engine][updates]") {
  for (const PipelineOptions& pipeline : test::every_schedule(2)) {
    CAPTURE(pipeline.schedule);
    for (const Grain grain : all_grains) {
      for (const bool overlaps : {false, true}) {
        check_one_after_another({.stages = 2, .pipeline = pipeline, .overlaps = overlaps}, grain);
      }
    }
  }
}

TEST_CASE("what a cold step has connected stays connected for its further updates", "[engine][updates]") {
  const Plan ring = plan_of(2, layers_of_model, {{{0, 1}, 2048}});
  const Setting warm;
  const Setting cold{.set_up = SetUpCosts{Communicators::one, {500_ms, 30_ms}, 20_ms}};
  for (const Grain grain : all_grains) {
    const Plan twice = joined_updates({ring, ring});
    CHECK(run(twice, cold, grain).step_time == run(twice, warm, grain).step_time + 20_ms);
  }
}

TEST_CASE("instructions of a further update name the micro-batches of the whole plan", "[engine][updates]") {
  const Plan ring = plan_of(1, layers_of_model, {{{0}, 100}});
  const Plan twice = joined_updates({ring, ring});
  HandMachine world(one_device_nodes(1, 1_GBps), std::make_unique<HandCosts>(1_us));
  world.machine.record_instructions = true;
  const Program program(twice, {model(), Mesh{.hdp = 1}});
  const Timeline timeline = simulate(program, world.machine, Grain::exact);
  REQUIRE(timeline.instructions.size() % 2 == 0);
  const std::size_t half = timeline.instructions.size() / 2;
  const Duration later = timeline.micro_batches[1].begin - timeline.micro_batches[0].begin;
  for (std::size_t i = 0; i < half; ++i) {
    CHECK(timeline.instructions[i].micro_batch == MicroBatchId(0));
    CHECK(timeline.instructions[half + i].micro_batch == MicroBatchId(1));
    CHECK(timeline.instructions[half + i].begin == timeline.instructions[i].begin + later);
  }
}

TEST_CASE("updates of a job that shares the network, and of its neighbour, follow each other", "[engine][updates]") {
  const std::vector<Plan> updates = two_updates();
  const Plan both = joined_updates(updates);
  const LoweringOptions lowering{model(), Mesh{.hdp = 3}};
  for (const Grain grain : {Grain::fluid, Grain::exact}) {
    HandMachine world(one_device_nodes(6, 1_GBps), std::make_unique<HandCosts>(1_us));
    world.machine.speed.resize(3);
    // A neighbour on other links slows nothing.
    const BehindFirst places;
    Machine other = world.machine;
    other.placement = &places;
    const Background beside{{{"neighbour", &other, lowering, [&](std::int64_t) { return both; }}}, {}};
    const auto time_of = [&](const Plan& plan, const Background& background) {
      const Program program(plan, lowering);
      return simulate(program, world.machine, grain, background).step_time;
    };
    CHECK(time_of(both, beside) == time_of(both, {}));
    CHECK(time_of(both, {}) == time_of(updates[0], {}) + time_of(updates[1], {}));
  }
}

}  // namespace
}  // namespace hdpsim
