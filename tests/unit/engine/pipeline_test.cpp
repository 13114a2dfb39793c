// Pipelines: bubbles in closed form, unequal micro-batches by hand, rings between pipelines, messages between stages.

#include "sim/engine/priced_program.h"
#include "sim/engine/simulator.h"
#include "sim/model/parameters.h"
#include "sim/model/work.h"
#include "sim/plan/expert_waves.h"
#include "sim/program/activations_in_flight.h"
#include "tests/support/catch.h"
#include "tests/support/every_schedule.h"
#include "tests/support/small_world.h"

namespace hdpsim {
namespace {

using test::all_grains;
using test::HandMachine;
using test::one_device_nodes;
using test::one_head_model;
using test::plan_of;
using Groups = std::vector<std::pair<std::vector<std::size_t>, std::int64_t>>;

constexpr std::int64_t tokens = 512;
constexpr std::int64_t vocabulary = 1000;

// A product of a layer takes what the constructor says, of the head nothing, so that all stages are alike. Attention
// takes `attention` forward and twice as much backward, whatever its size.
class LayerCosts final : public CostModel {
 public:
  LayerCosts(Duration product, Duration attention) : product_(product), attention_(attention) {}
  [[nodiscard]] Estimate gemm(const Gemm& op) const override {
    const bool head = op.m == vocabulary || op.n == vocabulary || op.k == vocabulary;
    return {head ? Duration{} : product_, Evidence::measured};
  }
  [[nodiscard]] Estimate memory_bound(const MemoryBound&) const override { return {Duration{}, Evidence::formula}; }
  [[nodiscard]] Estimate attention(const Attention& op) const override {
    return {op.direction == Direction::forward ? attention_ : attention_ * 2, Evidence::measured};
  }
  [[nodiscard]] std::int64_t kernels(const Attention& op) const override { return flash_attention_kernels(op); }

 private:
  Duration product_;
  Duration attention_;
};

// Products of a layer: QKV, output, gate with up, down; backward twice as many, half of them for weights.
struct PassTimes {
  Duration forward;
  Duration backward;
  Duration weights;

  PassTimes(Duration product, Duration attention, std::int64_t layers)
      : forward((product * 4 + attention) * layers),
        backward((product * 8 + attention * 2) * layers),
        weights(product * 4 * layers) {}
};

struct Case {
  std::int64_t stages = 2;
  std::int64_t layers = 8;
  PipelineOptions pipeline = {};
  bool tied = false;
  Bandwidth nic = 1_GBps * 1'000'000;  // messages take nothing to speak of
};

Timeline run_pipeline(const Plan& plan, const Case& setting, std::unique_ptr<CostModel> costs, Grain grain) {
  const Mesh mesh{.hdp = plan.ranks, .tp = 1, .pp = setting.stages};
  HandMachine world(one_device_nodes(mesh.devices(), setting.nic), std::move(costs), setting.stages);
  LoweringOptions options{one_head_model(setting.layers), mesh};
  options.model.tied_embeddings = setting.tied;
  options.pipeline = setting.pipeline;
  const Program program(plan, options);
  Timeline timeline = simulate(program, world.machine, grain);
  REQUIRE(timeline.ranks.size() == program.pipeline().workers());
  for (const Breakdown& worker : timeline.ranks) REQUIRE(worker.total() == timeline.step_time);
  return timeline;
}

void check_equal(Duration measured, Duration expected) {
  CHECK(measured.seconds() == Approx(expected.seconds()).epsilon(1e-6).margin(1e-8));  // messages: less than 10 ns
}

// The bubble of every worker of one pipeline with equal micro-batches, in all grains.
void check_bubble(std::size_t micro_batches, const Case& setting, Duration attention, Duration expected) {
  const Plan plan = plan_of(1, setting.layers, Groups(micro_batches, {{0}, tokens}));
  const PassTimes times(1_ms, attention, setting.layers / setting.stages);
  const Duration work = (times.forward + times.backward) * static_cast<std::int64_t>(micro_batches);
  for (const Grain grain : all_grains) {
    const Timeline timeline = run_pipeline(plan, setting, std::make_unique<LayerCosts>(1_ms, attention), grain);
    check_equal(timeline.step_time, work + expected);
    for (const Breakdown& worker : timeline.ranks) check_equal(worker[Activity::bubble], expected);
  }
}

TEST_CASE("GPipe and 1F1B: (p - 1) / (m + p - 1) of the step is bubble", "[engine][pipeline]") {
  for (const std::string_view schedule : {"gpipe", "1f1b"}) {
    for (const std::int64_t stages : {2, 4, 8}) {
      for (const std::size_t micro_batches : {1U, 3U, 8U}) {
        const PassTimes times(1_ms, 2_ms, 8 / stages);
        check_bubble(micro_batches, {.stages = stages, .pipeline = {schedule, 1}}, 2_ms,
                     (times.forward + times.backward) * (stages - 1));
      }
    }
  }
}

// Between two stages each forward pass of the first is sent before its next one, each backward pass of the second, too.
TEST_CASE("messages that nothing hides come before the next pass: GPipe on two stages", "[engine][pipeline]") {
  constexpr std::int64_t micro_batches = 5;
  const Plan plan = plan_of(1, 8, Groups(micro_batches, {{0}, tokens}));
  const PassTimes times(1_ms, 2_ms, 8 / 2);
  const Bandwidth nic = Bandwidth::bytes_per_second(100'000'000);
  const Duration message = hidden_bytes(one_head_model(8), tokens) / nic;
  REQUIRE(message < times.forward);
  const Duration work = (micro_batches + 1) * (times.forward + times.backward);
  for (const Grain grain : all_grains) {
    const auto step = [&](MessageOverlap overlap) {
      const Case setting{.stages = 2, .pipeline = {"gpipe", 1, overlap}, .nic = nic};
      return run_pipeline(plan, setting, std::make_unique<LayerCosts>(1_ms, 2_ms), grain).step_time;
    };
    check_equal(step(MessageOverlap::always), work + 2 * message);
    check_equal(step(MessageOverlap::never), work + 2 * micro_batches * message);
    CHECK(step(MessageOverlap::interleaved) == step(MessageOverlap::never));
  }
}

TEST_CASE("messages are hidden under virtual stages alone where a framework does it so", "[engine][pipeline]") {
  const Plan plan = plan_of(1, 16, Groups(8, {{0}, tokens}));
  for (const Grain grain : all_grains) {
    const auto step = [&](MessageOverlap overlap) {
      const Case setting{.stages = 4,
                         .layers = 16,
                         .pipeline = {"interleaved", 2, overlap},
                         .nic = Bandwidth::bytes_per_second(100'000'000)};
      return run_pipeline(plan, setting, std::make_unique<LayerCosts>(1_ms, 2_ms), grain).step_time;
    };
    CHECK(step(MessageOverlap::interleaved) == step(MessageOverlap::always));
    CHECK(step(MessageOverlap::never) > step(MessageOverlap::always));
  }
}

TEST_CASE("interleaved: v chunks a stage divide the bubble by v", "[engine][pipeline]") {
  for (const std::int64_t chunks : {2, 4}) {
    for (const std::size_t micro_batches : {4U, 8U}) {
      const PassTimes times(1_ms, 2_ms, 16 / 4);
      check_bubble(micro_batches, {.stages = 4, .layers = 16, .pipeline = {"interleaved", chunks}}, 2_ms,
                   ((times.forward + times.backward) * 3).scaled(1.0 / static_cast<double>(chunks)));
    }
  }
}

// Qi et al. 2023, table 2: (p - 1)(tF + tB - tW), where tB is the gradient of inputs alone. With tB for all of backward
// that is (p - 1)(tF + tB - 2 tW).
TEST_CASE("ZB-H1: the bubble is (p - 1)(tF + tB - 2 tW)", "[engine][pipeline]") {
  for (const std::int64_t stages : {2, 4}) {
    for (const std::size_t micro_batches : {4U, 8U, 12U}) {
      const PassTimes times(1_ms, 2_ms, 8 / stages);
      check_bubble(micro_batches, {.stages = stages, .pipeline = {"zb-h1", 1}}, 2_ms,
                   (times.forward + times.backward - times.weights * 2) * (stages - 1));
    }
  }
}

// Qi et al. 2023, section on ZB-V: with tF = tB = tW no stage is idle between its first and its last pass, and each
// holds the activations of p micro-batches, 2 p chunks. Stage s begins when s stages have run a chunk, and all stages
// have the same to do, so each waits p - 1 chunks' forward passes in all, before it or behind it. The papers begin the
// next step there; here all stages end theirs together. Without attention tF, tB and tW are four products a layer.
TEST_CASE("ZB-V: stages that have begun are never idle, with 1F1B's memory on all", "[engine][pipeline]") {
  for (const std::int64_t stages : {2, 3, 4}) {
    const Case setting{.stages = stages, .layers = 2 * stages * 2, .pipeline = {.schedule = "zb-v"}};
    const PassTimes chunk(1_ms, 0_ms, 2);
    for (const std::int64_t micro_batches : {2 * stages - 1, 2 * stages, 5 * stages + 1}) {
      check_bubble(static_cast<std::size_t>(micro_batches), setting, 0_ms, chunk.forward * (stages - 1));
    }
    CHECK(most_chunks_in_flight(*make_schedule(setting.pipeline, stages), 1000) ==
          std::vector<std::int64_t>(static_cast<std::size_t>(stages), 2 * stages));
  }
}

TEST_CASE("ZB-V: the first stage has both ends of the model, and keeps its hidden states between its chunks",
          "[pipeline]") {
  const Plan plan = plan_of(1, 4, Groups(1, {{0}, tokens}));
  const Pipeline pipeline(plan, 2, {.schedule = "zb-v"});
  const auto forward = [&](std::int64_t chunk) { return pipeline.id_of(MicroBatchId(0), chunk, PassKind::forward); };
  std::vector<std::int64_t> stages;
  for (std::int64_t chunk = 0; chunk < 4; ++chunk) stages.push_back(pipeline.pass(forward(chunk)).stage);
  CHECK(stages == std::vector<std::int64_t>{0, 1, 1, 0});
  CHECK(pipeline.target(forward(0)) == forward(1));
  CHECK_FALSE(pipeline.target(forward(1)).has_value());
  CHECK(pipeline.target(forward(2)) == forward(3));
  CHECK(pipeline.chunk_map().has_embedding(0));
  CHECK(pipeline.chunk_map().has_head(0));
}

// DeepSeek-AI 2024, table 2: a bubble of (p / 2 - 1)(F&B + B - 3 W), p + 1 chunks' activations, twice the parameters.
// F&B runs a forward and a backward pass at once, which both end when it ends. Here they follow each other: on the way
// of a micro-batch through the stages that leaves (p / 2 - 1)(F + B - 2 W), which is the report's for F&B = F + W and
// below it for every longer F&B, F + B at the most.
TEST_CASE("DualPipe: the bubble is (p / 2 - 1)(F + B - 2 W), with p + 1 chunks' activations", "[engine][pipeline]") {
  for (const std::int64_t stages : {2, 4, 6}) {
    const Case setting{.stages = stages, .layers = stages * 2, .pipeline = {.schedule = "dualpipe"}};
    for (const Duration attention : {0_ms, 2_ms}) {
      const PassTimes times(1_ms, attention, 2);
      const Duration bubble = (times.forward + times.backward - times.weights * 2) * (stages / 2 - 1);
      const Duration published = (times.forward + times.backward * 2 - times.weights * 3) * (stages / 2 - 1);
      CHECK(bubble <= published);
      for (const std::int64_t micro_batches : {2 * stages, 2 * stages + 2, 5 * stages}) {
        check_bubble(static_cast<std::size_t>(micro_batches), setting, attention, bubble);
      }
    }
    CHECK(most_chunks_in_flight(*make_schedule(setting.pipeline, stages), 1000) ==
          std::vector<std::int64_t>(static_cast<std::size_t>(stages), stages + 1));
  }
}

// A forward and a backward pass at once take max(K + k, X + x, K + X, k + x), of kernels K and k and all-to-alls X and
// x. All chunks are alike, so that every pair has one time; a pass that runs alone hides nothing.
TEST_CASE("DualPipe: all-to-alls of experts travel beside the kernels of the other pass", "[engine][pipeline]") {
  constexpr std::int64_t stages = 4;
  Transformer model = one_head_model(2 * stages);
  model.moe = MixtureOfExperts{.experts = 2, .experts_per_token = 1, .expert_hidden = 128};
  Groups groups;
  for (int i = 0; i < 40; ++i) groups.insert(groups.end(), {{{0}, tokens}, {{1}, tokens}});
  const Plan plan = in_expert_waves(plan_of(2, model.layers, groups), 2, 0);
  LoweringOptions options{model, Mesh{.hdp = 2, .pp = stages, .ep = 2}};
  options.experts.ep = 2;
  options.pipeline.schedule = "dualpipe";
  const Program program(plan, options);
  const Pipeline& pipeline = program.pipeline();
  // The forward pass of the middle of a long step, with both passes of the backward beside it.
  const PassId forward = pipeline.id_of(MicroBatchId(40), 1, PassKind::forward);
  REQUIRE(pipeline.overlap_partner(forward).has_value());
  const PassId inputs = *pipeline.overlap_partner(forward);
  CHECK(pipeline.overlap_partner(inputs) == forward);
  const StagePass other = pipeline.pass(inputs);
  CHECK(other.kind == PassKind::input_gradient);
  CHECK(other.stage == pipeline.pass(forward).stage);
  const PassId weights = pipeline.id_of(other.micro_batch, other.chunk, PassKind::weight_gradient);
  CHECK_FALSE(pipeline.overlap_partner(pipeline.id_of(MicroBatchId(0), 0, PassKind::forward)).has_value());
  for (const Duration exchange : {1_us, 10_us, 30_us, 1_ms}) {
    HandMachine world(test::one_device_nodes(2 * stages, 1_GBps), std::make_unique<test::HandCosts>(1_us), 2);
    world.machine.experts = test::each_takes(exchange);
    const auto time = [&](PassId id) { return time_of_one_rank(price(program, id, world.machine), 1); };
    const auto all_kernels = [&](PassId id) {
      const Breakdown parts = time(id);
      return parts[Activity::linear] + parts[Activity::attention];
    };
    // Two layers with two all-to-alls each way.
    const Duration exchanges = exchange * 4;
    const Duration kernels = all_kernels(forward);
    const Duration others = all_kernels(inputs) + all_kernels(weights);
    const Duration both = time(forward).total() + time(inputs).total() + time(weights).total();
    CHECK(both.seconds() ==
          Approx(std::max({kernels + others, exchanges * 2, kernels + exchanges, others + exchanges}).seconds()));
  }
}

TEST_CASE("DualPipe: every stage has the parameters of its mirror image, and sums their gradients with it",
          "[pipeline]") {
  const Plan plan = plan_of(2, 8, {{{0}, tokens}, {{0}, tokens}, {{0}, tokens}});
  const LoweringOptions options{
      .model = one_head_model(8), .mesh = {.hdp = 2, .tp = 1, .pp = 4}, .pipeline = {.schedule = "dualpipe"}};
  const Program program(plan, options);
  const ChunkMap& chunks = program.pipeline().chunk_map();
  std::int64_t parameters = 0;
  for (std::int64_t stage = 0; stage < 4; ++stage) {
    parameters += parameters_of_stage(options.model, options.mesh, chunks, stage);
    const StepEnd end = program.step_end(stage);
    CHECK(end.other_stage == 3 - stage);
    CHECK(end.twice == end.gradient.common / 2);  // a rank of two in the pool has half of the sums
  }
  CHECK(parameters == 2 * parameter_count(options.model));
  // The second micro-batch enters at the last stage.
  for (const std::size_t id : {0, 1, 2}) {
    const PassId head = program.pipeline().id_of(MicroBatchId(id), 3, PassKind::forward);
    CHECK(program.pipeline().pass(head).stage == (id % 2 == 0 ? 3 : 0));
  }
}

// Attention takes a picosecond a pair forward and two backward, everything else nothing: a span of 1000 tokens is 1,
// one of 1733 tokens 3 (in units of 1000 x 1001 / 2 ps), forward on either of two stages of one layer.
//   stage 0:  F0 [0, 1]  F1 [1, 4]  B0 [4, 6]           B1 [13, 19]
//   stage 1:             F0 [1, 2]  B0 [2, 4]  F1 [4, 7]  B1 [7, 13]
TEST_CASE("1F1B with unequal micro-batches waits where the hand-made schedule waits", "[engine][pipeline]") {
  const Plan plan = plan_of(1, 2, {{{0}, 1000}, {{0}, 1733}});
  const double unit = 1000.0 * 1001 / 2 * 1e-12;
  for (const Grain grain : all_grains) {
    const Timeline timeline =
        run_pipeline(plan, {.stages = 2, .layers = 2}, std::make_unique<test::HandCosts>(Duration{}), grain);
    CHECK(timeline.step_time.seconds() / unit == Approx(19).epsilon(0.01));
    CHECK(timeline.ranks[0][Activity::bubble].seconds() / unit == Approx(7).epsilon(0.01));
    CHECK(timeline.ranks[1][Activity::bubble].seconds() / unit == Approx(1 + 6).epsilon(0.01));
    CHECK(timeline.micro_batches[0].end.since_start().seconds() / unit == Approx(6).epsilon(0.01));
    CHECK(timeline.micro_batches[1].begin.since_start().seconds() / unit == Approx(1).epsilon(0.01));
  }
}

// A product takes as many picoseconds as it has multiplications, of the head none, and nothing else takes time.
class ProductCosts final : public CostModel {
 public:
  [[nodiscard]] Estimate gemm(const Gemm& op) const override {
    const bool head = op.m == vocabulary || op.n == vocabulary || op.k == vocabulary;
    return {Duration::picoseconds(head ? 0 : op.m * op.n * op.k), Evidence::measured};
  }
  [[nodiscard]] Estimate memory_bound(const MemoryBound&) const override { return {Duration{}, Evidence::formula}; }
  [[nodiscard]] Estimate attention(const Attention&) const override { return {Duration{}, Evidence::measured}; }
  [[nodiscard]] std::int64_t kernels(const Attention&) const override { return 0; }
};

// ChunkFlow's example (arXiv 2503.02356): sequences of 4, 1, 2 and 1 units on four stages waste 57.14 % of a step as
// micro-batches. In chunks of 2 units of which two are kept they waste 47.8 %, and in chunks of 4 units 60 %.
TEST_CASE("chunks of even length leave less of a pipeline idle", "[engine][pipeline][chunks]") {
  constexpr std::int64_t unit = 256;
  const auto idle = [&](const std::vector<std::vector<std::int64_t>>& sequences, Grain grain) {
    const Plan plan = test::chunks_in_order(4, sequences, 2);
    const Timeline timeline = run_pipeline(plan, {.stages = 4, .layers = 4, .pipeline = {"1f1b", 1}},
                                           std::make_unique<ProductCosts>(), grain);
    for (const Breakdown& worker : timeline.ranks) {
      CHECK(worker[Activity::bubble].seconds() == Approx(timeline.ranks[0][Activity::bubble].seconds()).epsilon(1e-3));
    }
    return timeline.ranks[0][Activity::bubble].seconds() / timeline.step_time.seconds();
  };
  for (const Grain grain : all_grains) {
    CHECK(idle({{4 * unit}, {unit}, {2 * unit}, {unit}}, grain) == Approx(0.5714).epsilon(1e-3));
    CHECK(idle({{2 * unit}, {2 * unit}, {2 * unit, 2 * unit}}, grain) == Approx(0.478).epsilon(1e-3));
    CHECK(idle({{4 * unit}, {4 * unit}}, grain) == Approx(0.6).epsilon(1e-3));
  }
}

TEST_CASE("the chunks of a sequence attend to as much as the sequence does", "[engine][chunks]") {
  const Plan plan = test::chunks_in_order(2, {{1000, 3000, 500}}, 3);
  const auto pairs = 4500.0 * 4501 / 2;
  for (const Grain grain : all_grains) {
    const Timeline timeline =
        run_pipeline(plan, {.stages = 1, .layers = 2}, std::make_unique<test::HandCosts>(Duration{}), grain);
    // A picosecond a pair forward and two backward, in two layers.
    CHECK(timeline.ranks[0][Activity::attention].seconds() == Approx(2 * 3 * pairs * 1e-12));
    CHECK(timeline.ranks[0].total() == timeline.step_time);
  }
}

TEST_CASE("a chunk whose activations are dropped goes forward twice", "[engine][chunks]") {
  const auto time = [](std::size_t kept, Grain grain) {
    const Plan plan = test::chunks_in_order(2, {{tokens, tokens, tokens}}, kept);
    return run_pipeline(plan, {.stages = 1, .layers = 2}, std::make_unique<LayerCosts>(1_ms, 2_ms), grain).step_time;
  };
  const PassTimes times(1_ms, 2_ms, 2);
  for (const Grain grain : all_grains) {
    check_equal(time(3, grain), (times.forward + times.backward) * 3);
    check_equal(time(1, grain), (times.forward + times.backward) * 3 + times.forward * 2);
  }
}

TEST_CASE("the output head makes the last stage the slow one", "[engine][pipeline]") {
  const Plan plan = plan_of(1, 4, Groups(4, {{0}, tokens}));
  for (const Grain grain : all_grains) {
    const Timeline timeline =
        run_pipeline(plan, {.stages = 2, .layers = 4}, std::make_unique<test::HandCosts>(1_ms), grain);
    // 4 micro-batches: a product forward and two backward.
    CHECK(timeline.ranks[1][Activity::linear] - timeline.ranks[0][Activity::linear] == 4 * 3 * 1_ms);
    CHECK(timeline.ranks[0][Activity::bubble] > timeline.ranks[1][Activity::bubble]);
  }
}

TEST_CASE("a ring makes the same stage of two pipelines wait for each other", "[engine][pipeline]") {
  // Rank 1 runs one micro-batch alone before the one that both share; rank 0 has nothing to do meanwhile. A ring of two
  // has two attention launches a layer.
  const Plan plan = plan_of(2, 8, {{{1}, tokens}, {{0, 1}, 2 * tokens}});
  const PassTimes alone(1_ms, 2_ms, 4);
  const PassTimes shared(1_ms, 4_ms, 4);
  // In the exact grain a rank may be ahead of its ring by what needs no keys of others: a product, its own attention.
  const Duration ahead = 1_ms + 2_ms;
  for (const Grain grain : all_grains) {
    const Timeline timeline = run_pipeline(plan, {}, std::make_unique<LayerCosts>(1_ms, 2_ms), grain);
    const double tolerance = grain == Grain::exact ? ahead.seconds() : 1e-6;
    const auto wait = [&](std::size_t stage) { return timeline.ranks[stage][Activity::group_wait].seconds(); };
    CHECK(wait(0) == Approx(alone.forward.seconds()).margin(tolerance));
    // Stage 1 of rank 0 gets the activations while that of rank 1 still goes backward through its own micro-batch.
    const Duration there = alone.forward + shared.forward;
    CHECK(wait(1) == Approx((alone.forward * 2 + alone.backward - there).seconds()).margin(tolerance));
  }
}

TEST_CASE("pipelines of unequal length end together only where a ring joins them", "[engine][pipeline]") {
  // Three micro-batches against one: the short pipeline is done after 2 (tF + tB) and waits for the other.
  const Plan plan = plan_of(2, 8, {{{0}, tokens}, {{0}, tokens}, {{0}, tokens}, {{1}, tokens}});
  const PassTimes times(1_ms, 2_ms, 4);
  const Duration both = times.forward + times.backward;
  for (const Grain grain : all_grains) {
    const Timeline timeline = run_pipeline(plan, {}, std::make_unique<LayerCosts>(1_ms, 2_ms), grain);
    check_equal(timeline.step_time, both * (3 + 1));
    check_equal(timeline.ranks[2][Activity::group_wait], both * 4 - both * 2);
    check_equal(timeline.ranks[2][Activity::bubble], both);
  }
}

TEST_CASE("two rings at unlike distances do not deadlock, whatever the schedule", "[engine][pipeline]") {
  const Plan plan = plan_of(2, 8, {{{0, 1}, tokens}, {{1}, tokens}, {{1}, tokens}, {{0, 1}, tokens}});
  for (const std::int64_t stages : {2, 4}) {
    for (const PipelineOptions& pipeline : test::every_schedule(stages)) {
      CAPTURE(pipeline.schedule);
      const Case setting{.stages = stages, .pipeline = pipeline};
      for (const Grain grain : all_grains) {
        CHECK(run_pipeline(plan, setting, std::make_unique<LayerCosts>(1_ms, 2_ms), grain).step_time > Duration{});
      }
    }
  }
}

TEST_CASE("a message between stages takes its bytes over the network, and kernels go on beside it",
          "[engine][pipeline]") {
  const Bandwidth nic = 1_GBps;
  const Duration message = Bytes(tokens * 64 * 2) / nic;
  const PassTimes times(1_ms, 2_ms, 4);
  const Duration both = times.forward + times.backward;
  for (const Grain grain : all_grains) {
    const auto step = [&](std::size_t micro_batches, std::string_view schedule = "1f1b") {
      const Plan plan = plan_of(1, 8, Groups(micro_batches, {{0}, tokens}));
      return run_pipeline(plan, {.pipeline = {schedule, 1}, .nic = nic}, std::make_unique<LayerCosts>(1_ms, 2_ms),
                          grain);
    };
    CHECK(step(1).step_time == both * 2 + message * 2);
    CHECK(step(1).ranks[0][Activity::bubble] == both + message * 2);
    // All forward passes are there in time but the first, and all gradients but the last.
    CHECK(step(4, "gpipe").step_time == both * 5 + message * 2);
    // The third forward pass must wait for the first gradient to come up and goes down itself: two more.
    CHECK(step(4, "1f1b").step_time == both * 5 + message * 4);
  }
}

TEST_CASE("a tied table is summed between the first and the last stage", "[engine][pipeline]") {
  const Plan plan = plan_of(1, 8, Groups(2, {{0}, tokens}));
  Case setting{.stages = 4, .nic = 1_GBps};
  for (const Grain grain : all_grains) {
    const auto step = [&] { return run_pipeline(plan, setting, std::make_unique<LayerCosts>(1_ms, 2_ms), grain); };
    setting.tied = false;
    const Timeline apart = step();
    setting.tied = true;
    const Timeline tied = step();
    const Duration sum = Bytes(vocabulary * 64 * 4) / 2 / setting.nic * 2;
    CHECK(tied.step_time - apart.step_time == sum);
    CHECK(tied.ranks[0][Activity::grad_sync] == sum);
    CHECK(tied.ranks[1][Activity::grad_sync] == Duration{});
  }
}

}  // namespace
}  // namespace hdpsim
