#include <fmt/format.h>

#include <map>
#include <mutex>
#include <set>
#include <tuple>

#include "kernels/exec/executor.h"
#include "kernels/exec/requirements.h"
#include "kernels/spec/error.h"
#include "tests/support/catch.h"
#include "tests/support/counting_transport.h"
#include "tests/support/every_schedule.h"
#include "tests/support/kernels.h"
#include "tests/support/reference_transformer.h"
#include "tests/support/tiny_training.h"

namespace hdpsim::kernels::exec {
namespace {

constexpr PipelineOptions one_f_one_b{.schedule = "1f1b"};
constexpr PipelineOptions gpipe{.schedule = "gpipe"};
constexpr PipelineOptions interleaved{.schedule = "interleaved", .virtual_stages = 2};

std::string pipeline_text(const Way& way) {
  return fmt::format("pp {}, {}, tp {}", way.pp, way.pipeline.schedule, way.tp);
}

// Four micro-batches one after another on one rank.
Plan four_micro_batches(std::int64_t layers) {
  return hand_plan(1, layers, {20, 31, 9, 40}, {{{0}, {0}}, {{0}, {1}}, {{0}, {2}}, {{0}, {3}}});
}

TEST_CASE("stages of a pipeline have the loss and the gradients of fp64, in packs and in rings", "[exec][pp]") {
  const Transformer model = four_heads(4);
  const auto tokens = make_synthetic_tokens(model.vocabulary, 5);
  std::vector<float> start(static_cast<std::size_t>(ParameterLayout(model).count()));
  ParameterLayout(model).initial_values(TrainingOptions{}.seed, 0, start);
  const auto expected = ReferenceTransformer(model, start).step(mixed_lengths, 0, *tokens);
  std::vector<Way> ways = {{.pp = 4}, {.pp = 3, .pipeline = gpipe}};
  for (const PipelineOptions& pipeline : test::every_schedule(2)) {
    for (const int tp : {1, 2}) ways.push_back({.tp = tp, .pp = 2, .pipeline = pipeline});
  }
  for (const Way& way : ways) {
    for (const std::int64_t hdp : {1, 2}) {
      INFO(pipeline_text(way) << ", hdp " << hdp);
      const Training trained = train(model, packs_and_rings(hdp, model.layers), *tokens, way);
      CHECK(trained.losses[0] == Approx(expected.loss).epsilon(1e-6));
      CHECK(test::relative_rms_error(trained.gradients, expected.gradients) <= rounding);
    }
  }
}

TEST_CASE("stages with layers of their own number have the gradients of one rank", "[exec][pp]") {
  const Transformer model = four_heads(6);
  const auto tokens = make_synthetic_tokens(model.vocabulary, 5);
  const Plan plan = packs_and_rings(1, model.layers);
  const Training one = train(model, plan, *tokens, Way{});
  const std::vector<Way> ways = {
      {.pp = 3, .pipeline = {.split = {.counts_embedding = true}}},
      {.pp = 2, .pipeline = {.split = {.first_stage = 1}}},
      {.pp = 2, .pipeline = {.schedule = "interleaved", .virtual_stages = 2, .split = {.counts_embedding = true}}}};
  for (const Way& way : ways) {
    INFO(pipeline_text(way));
    const Training staged = train(model, plan, *tokens, way);
    CHECK(staged.losses[0] == Approx(one.losses[0]).epsilon(1e-6));
    CHECK(test::relative_rms_error(staged.gradients, one.gradients) <= rounding);
  }
}

TEST_CASE("a pipeline with fewer micro-batches than its neighbour, or none, weighs every token the same",
          "[exec][pp]") {
  const Transformer model = tiny_model(3);
  const auto tokens = make_synthetic_tokens(model.vocabulary, 1);
  const std::vector<std::int64_t> lengths = {40, 3, 3, 3, 9};
  const Training one = train(model, one_rank_plan(model.layers, lengths), *tokens, Way{});
  const Plan plan =
      hand_plan(3, model.layers, lengths, {{{0}, {0}}, {{1}, {1}}, {{1}, {2}}, {{1}, {3}}, {{1, 0}, {4}}});
  for (const PipelineOptions& pipeline : {one_f_one_b, gpipe}) {
    const Training three = train(model, plan, *tokens, {.pp = 3, .pipeline = pipeline});
    CHECK(three.losses[0] == Approx(one.losses[0]).epsilon(1e-6));
    CHECK(test::relative_rms_error(three.gradients, one.gradients) <= rounding);
  }
}

TEST_CASE("random plans through random pipelines have the gradients of one rank", "[exec][pp][property]") {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    INFO("replay: seed " << seed);
    RandomStream random(seed, "pipelines");
    const auto below = [&](std::uint64_t bound) { return static_cast<std::int64_t>(random.below(bound)); };
    const Transformer model = four_heads(4 + below(3));
    std::vector<std::int64_t> lengths(static_cast<std::size_t>(1 + below(8)));
    for (std::int64_t& length : lengths) length = 1 + below(50);
    const Plan plan = random_plan(random, 1 + below(3), model.layers, lengths);
    Way way{.tp = static_cast<int>(1 + below(2)), .pp = static_cast<int>(2 + below(3))};
    const std::vector<PipelineOptions> schedules = test::every_schedule(way.pp);
    way.pipeline = schedules[random.below(schedules.size())];
    if (make_schedule(way.pipeline, way.pp)->chunks() > model.layers) way.pp = 2;
    INFO(pipeline_text(way));
    const auto tokens = make_synthetic_tokens(model.vocabulary, seed);
    const Training one = train(model, one_rank_plan(model.layers, lengths), *tokens, Way{});
    const Training many = train(model, plan, *tokens, way);
    CHECK(test::relative_rms_error(many.gradients, one.gradients) <= rounding);
  }
}

TEST_CASE("the first and the last stage share a tied table, and both its gradients", "[exec][pp]") {
  Transformer model = four_heads(4);
  model.tied_embeddings = true;
  const auto tokens = make_synthetic_tokens(model.vocabulary, 5);
  std::vector<Plan> plans(3, packs_and_rings(2, model.layers));
  for (std::size_t step = 0; step < plans.size(); ++step) plans[step].step = static_cast<std::int64_t>(step);
  const TrainingOptions options{.seed = 1, .adam = {.rate = 1e-3F}};
  const Training one = train(model, plans, *tokens, options);
  std::vector<Way> ways = {{.pp = 3}, {.tp = 2, .pp = 2}};
  for (const PipelineOptions& pipeline : test::every_schedule(2)) ways.push_back({.pp = 2, .pipeline = pipeline});
  for (const Way& way : ways) {
    INFO(pipeline_text(way));
    const Training staged = train(model, plans, *tokens, options, default_time_limit, way);
    CHECK(staged.losses[0] == Approx(one.losses[0]).epsilon(1e-6));
    // The table takes the same steps on both stages: were they to part, later losses would tell.
    for (std::size_t step = 1; step < plans.size(); ++step) {
      CHECK(staged.losses[step] == Approx(one.losses[step]).epsilon(1e-5));
    }
  }
  const Training first = train(model, plans[0], *tokens, Way{});
  CHECK(test::relative_rms_error(train(model, plans[0], *tokens, {.pp = 3}).gradients, first.gradients) <= rounding);
}

TEST_CASE("training goes the same way through any pipeline, and the same plan gives the same bits", "[exec][pp]") {
  const Transformer model = four_heads(4);
  const auto tokens = make_synthetic_tokens(model.vocabulary, 3);
  std::vector<Plan> plans(2, packs_and_rings(2, model.layers));
  for (std::size_t step = 0; step < plans.size(); ++step) plans[step].step = static_cast<std::int64_t>(step);
  const TrainingOptions options{.seed = 1, .adam = {.rate = 1e-3F}};
  const Training one = train(model, plans, *tokens, options);
  CHECK(one.losses.back() < one.losses.front());
  for (const PipelineOptions& pipeline : test::every_schedule(2)) {
    const Way way{.pp = 2, .pipeline = pipeline};
    INFO(pipeline_text(way));
    const Training staged = train(model, plans, *tokens, options, default_time_limit, way);
    for (std::size_t step = 0; step < plans.size(); ++step) {
      CHECK(staged.losses[step] == Approx(one.losses[step]).epsilon(1e-5));
    }
    const Training again = train(model, plans, *tokens, options, default_time_limit, way);
    CHECK(again.losses == staged.losses);
    CHECK(again.parameters == staged.parameters);
  }
}

TEST_CASE("what stages compute again, or had on the host, gives the same bits", "[exec][pp][recompute][offload]") {
  const Transformer model = four_heads(6);
  const auto tokens = make_synthetic_tokens(model.vocabulary, 5);
  const Plan plan = packs_and_rings(2, model.layers);
  Plan offloaded = plan;
  for (std::size_t i = 0; i < offloaded.micro_batches.size(); ++i) {
    offloaded.micro_batches[i].offload = i % 2 == 0 ? 0 : 1;
  }
  for (const PipelineOptions& pipeline : test::every_schedule(2)) {
    INFO(pipeline.schedule);
    const Training kept = train(model, plan, *tokens, {.pp = 2, .pipeline = pipeline});
    for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
      const Training other = train(model, offloaded, *tokens, {.recompute = recompute, .pp = 2, .pipeline = pipeline});
      CHECK(other.losses == kept.losses);
      CHECK((other.gradients == kept.gradients));  // too many to print
    }
  }
}

TEST_CASE("a stage keeps the activations of as many micro-batches as its schedule has in flight", "[exec][pp]") {
  const Transformer model = tiny_model(3);
  const auto tokens = make_synthetic_tokens(model.vocabulary, 1);
  const auto in_flight = [&](const PipelineOptions& pipeline) {
    const Way way{.pp = 3, .pipeline = pipeline};
    const Plan plan = planned_for(way, four_micro_batches(model.layers));
    std::vector<std::size_t> most(3);
    run_ranks(3, [&](Transport& transport) {
      const auto backend = make_cpu_backend();
      Executor executor(*backend, transport, model, options_for(way));
      const LoweringOptions lowering = lowering_for(*backend, model, way.mesh(1), {}, pipeline);
      const Program program(plan, lowering);
      for (int step = 0; step < 2; ++step) (void)executor.run_step(program, *tokens);
      most[static_cast<std::size_t>(transport.rank())] = executor.most_in_flight();
    });
    return most;
  };
  // 1F1B: stage s of p has p - s, of which the last goes forward and back at once. GPipe: all four.
  CHECK(in_flight(one_f_one_b) == std::vector<std::size_t>{3, 2, 1});
  CHECK(in_flight(gpipe) == std::vector<std::size_t>{4, 4, 4});
  // What waits for its weight gradient is in flight, too.
  CHECK(in_flight({.schedule = "zb-h1"}) == std::vector<std::size_t>{3, 3, 3});
}

// ---- Time

TEST_CASE("the timeline of a pipeline has every instruction of every pass once", "[exec][pp][timeline]") {
  const Transformer model = tiny_model(4);
  const auto tokens = make_synthetic_tokens(model.vocabulary, 3);
  const Plan plan = packs_and_rings(2, model.layers);
  for (const PipelineOptions& pipeline : test::every_schedule(2)) {
    const Way way{.pp = 2, .pipeline = pipeline};
    INFO(pipeline_text(way));
    const Timeline timeline = train(model, plan, *tokens, way).timelines.at(0);
    LoweringOptions lowering{.model = model, .mesh = way.mesh(2), .pipeline = pipeline};
    lowering.recipe.separate_merge = false;
    const Plan own = planned_for(way, plan);
    const Program program(own, lowering);

    using Id = std::tuple<std::size_t, std::size_t, std::size_t, std::int64_t, std::size_t, Opcode>;
    std::multiset<Id> expected;
    for (std::size_t pass = 0; pass < program.pipeline().passes(); ++pass) {
      const MicroBatchProgram lowered = program.pass(PassId(pass));
      for (const HdpRank rank : program.pipeline().micro_batch(PassId(pass)).group) {
        for (std::size_t b = 0; b < lowered.blocks.size(); ++b) {
          for (std::int64_t n = 0; n < lowered.blocks[b].iterations; ++n) {
            for (std::size_t i = 0; i < lowered.blocks[b].body.size(); ++i) {
              expected.insert({rank.index(), pass, b, n, i, lowered.blocks[b].body[i].opcode});
            }
          }
        }
      }
    }
    std::multiset<Id> found;
    for (const InstructionRecord& r : timeline.instructions) {
      found.insert(
          {r.rank.index(), pass_of(r, program.pipeline()).index(), r.block, r.iteration, r.instruction, r.opcode});
    }
    CHECK(found == expected);

    REQUIRE(timeline.ranks.size() == 4);
    for (const Breakdown& worker : timeline.ranks) {
      CHECK(worker.total() == timeline.step_time);
      CHECK(worker[Activity::bubble] > Duration{});
      CHECK(worker[Activity::linear] > Duration{});
    }
  }
}

TEST_CASE("a pass begins when the one that it needs has ended, on another stage", "[exec][pp][timeline]") {
  const Transformer model = tiny_model(3);
  const auto tokens = make_synthetic_tokens(model.vocabulary, 3);
  const Way way{.pp = 3};
  const Plan plan = planned_for(way, four_micro_batches(model.layers));
  const Timeline timeline = train(model, four_micro_batches(model.layers), *tokens, way).timelines.at(0);
  const LoweringOptions lowering{.model = model, .mesh = way.mesh(1)};
  const Program program(plan, lowering);
  const Pipeline& pipeline = program.pipeline();
  REQUIRE(timeline.passes.size() == pipeline.passes());
  std::size_t needed = 0;
  for (std::size_t pass = 0; pass < pipeline.passes(); ++pass) {
    const auto source = pipeline.source(PassId(pass));
    if (!source) continue;
    ++needed;
    CHECK(timeline.interval(*source).end <= timeline.interval(PassId(pass)).begin);
  }
  CHECK(needed == 4 * 4);  // micro-batches, times two messages forward and two backward
  for (const std::vector<PassId>& of_worker : pipeline.orders()) {
    for (std::size_t i = 1; i < of_worker.size(); ++i) {
      CHECK(timeline.interval(of_worker[i - 1]).end <= timeline.interval(of_worker[i]).begin);
    }
  }
}

TEST_CASE("a message between stages has the bytes that its program says", "[exec][pp]") {
  // 24 tokens on a ring of 2 and 2 devices each: 6 rows a device, of 72 fp32.
  const Transformer model = four_heads(2);
  const Way way{.tp = 2, .pp = 2};
  const Plan plan = planned_for(way, hand_plan(2, 2, {24}, {{{0, 1}, {0}}}));
  const auto tokens = make_synthetic_tokens(model.vocabulary, 3);
  std::mutex mutex;
  std::map<std::pair<int, int>, std::size_t> sent;  // the first by sender and receiver
  run_ranks(8, [&](Transport& transport) {
    const auto backend = make_cpu_backend();
    CountingTransport counting(transport);
    Executor executor(*backend, counting, model, options_for(way));
    const LoweringOptions lowering = lowering_for(*backend, model, way.mesh(2));
    const Program program(plan, lowering);
    (void)executor.run_step(program, *tokens);
    const std::lock_guard lock(mutex);
    for (const std::vector<Send>& messages : counting.started) {
      for (const Send& message : messages) sent.try_emplace({transport.rank(), message.peer}, message.bytes);
    }
    const auto bytes = static_cast<std::size_t>(program.message(PassId(0)).count());
    CHECK(bytes == 6 * 72 * sizeof(float));
  });
  // Ranks of the transport: (r pp + s) tp + t. What stages say at the end of the step comes later.
  for (const int rank : {0, 1}) {
    for (const int shard : {0, 1}) {
      const int first = 4 * rank + shard;
      CHECK(sent.at({first, first + 2}) == 6 * 72 * sizeof(float));
      CHECK(sent.at({first + 2, first}) == 6 * 72 * sizeof(float));
    }
  }
}

// ---- What a stage holds

TEST_CASE("the stages of a pipeline hold every parameter, as many each as the simulator counts", "[exec][pp]") {
  for (const bool tied : {false, true}) {
    for (const PipelineOptions& pipeline : test::every_schedule(2)) {
      INFO(pipeline.schedule);
      Transformer model = four_heads(5);
      model.tied_embeddings = tied;
      const std::int64_t whole = ParameterLayout(model).count();
      std::vector<int> holders(static_cast<std::size_t>(whole));
      for (int stage = 0; stage < 2; ++stage) {
        const ChunkMap chunks(pipeline, 2);
        const ParameterLayout layout(model, {}, stage_at(stage, chunks));
        CHECK(layout.whole_count() == whole);
        CHECK(layout.count() == parameters_of_stage(model, {.hdp = 1, .pp = 2}, chunks, stage));
        for (const ParameterLayout::Stretch& stretch : layout.stretches(0, layout.count())) {
          for (std::int64_t i = 0; i < stretch.count; ++i) ++holders[static_cast<std::size_t>(stretch.in_whole + i)];
        }
      }
      const ChunkMap map(pipeline, 2);
      const bool parts_table = tied && map.has_embedding(0) != map.has_head(0);
      const auto table = static_cast<std::size_t>(model.vocabulary * model.hidden);
      for (std::size_t i = 0; i < holders.size(); ++i) {
        const std::int64_t expected = parts_table && i < table ? 2 : map.copies();
        if (holders[i] != expected) FAIL("parameter " << i << " has " << holders[i] << " holders");
      }
    }
  }
}

TEST_CASE("what cannot be executed of a pipeline is refused, all of it at once", "[exec][pp]") {
  Transformer model = tiny_model(2);
  model.biases = true;
  const auto refused = [&](const Mesh& mesh, const PipelineOptions& pipeline, const std::string& reason) {
    CHECK_THROWS_WITH(require_executable(model, mesh, pipeline), reason);
  };
  refused(
      {.pp = 3}, {},
      "model 'tiny' cannot be executed: it has biases; its 2 layers make no such pipeline: chunk 2 of 3 gets no layer");
  model.biases = false;
  refused({.pp = 2}, {.schedule = "interleaved", .virtual_stages = 2},
          "its 2 layers make no such pipeline: chunk 2 of 4 gets no layer");
  refused({.pp = 3}, {.split = {.counts_loss = true}},
          "an embedding or a loss is a chunk without a layer, which is simulated, and not executed: leave "
          "account_for_embedding and account_for_loss out, or choose fewer stages");
  require_executable(model, {.pp = 2}, {.schedule = "gpipe"});
  require_executable(model, {.pp = 1}, {.schedule = "zb-h1"});  // of one stage there is no schedule

  const auto tokens = make_synthetic_tokens(model.vocabulary, 1);
  const auto run_as_pp_1 = [&] {
    run_ranks(2, [&](Transport& transport) {
      const auto backend = make_cpu_backend();
      Executor executor(*backend, transport, model, options_for({.pp = 2}));
      const LoweringOptions lowering = lowering_for(*backend, model, {.hdp = 1});
      (void)executor.run_step(Program(planned_for({.pp = 2}, one_rank_plan(2, {9})), lowering), *tokens);
    });
  };
  CHECK_THROWS_WITH(run_as_pp_1(), "the program is for 1 stages of 1 chunks, but ranks have 2 of 1");
}

}  // namespace
}  // namespace hdpsim::kernels::exec
