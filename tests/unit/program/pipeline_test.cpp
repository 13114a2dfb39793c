// Who runs which pass when: the schedules of the literature, and what unequal ranks make of them.

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "sim/model/kept_tensors.h"
#include "sim/model/parameters.h"
#include "sim/model/work.h"
#include "sim/program/layer_layout.h"
#include "sim/program/program.h"
#include "tests/support/catch.h"
#include "tests/support/every_schedule.h"
#include "tests/support/small_world.h"

namespace hdpsim {
namespace {

using test::one_head_model;
using test::plan_of;
using Groups = std::vector<std::pair<std::vector<std::size_t>, std::int64_t>>;

Groups alone(std::size_t micro_batches) {
  return Groups(micro_batches, {{0}, 64});
}

// "F0 F1 B0 ..." of a worker: the pass's kind and its micro-batch; with the chunk of the stage if there are several.
std::string order_of(const Pipeline& pipeline, HdpRank rank, std::int64_t stage) {
  std::string text;
  for (const PassId id : pipeline.orders()[pipeline.worker(rank, stage).index()]) {
    const StagePass pass = pipeline.pass(id);
    const bool chunks = pipeline.chunks() > pipeline.stages();
    const char kind = pass.kind == PassKind::forward ? 'F' : pass.kind == PassKind::weight_gradient ? 'W' : 'B';
    text += fmt::format("{}{}{}{}", text.empty() ? "" : " ", kind, pass.micro_batch.index(),
                        chunks ? std::string(1, static_cast<char>('a' + pass.chunk / pipeline.stages())) : "");
  }
  return text;
}

std::string order_of(const Plan& plan, std::int64_t stages, const PipelineOptions& options, std::int64_t stage,
                     std::size_t rank = 0) {
  return order_of(Pipeline(plan, stages, options), HdpRank(rank), stage);
}

std::vector<std::int64_t> dealt(std::int64_t layers, std::int64_t stages, const PipelineOptions& options) {
  const ChunkMap chunks(options, stages);
  std::vector<std::int64_t> counts;
  std::int64_t next = 0;
  for (std::int64_t chunk = 0; chunk < chunks.chunks(); ++chunk) {
    const LayerRange range = chunks.deal().layers(layers, chunk);
    CHECK(range.first == next);
    counts.push_back(range.count);
    next += range.count;
  }
  CHECK(next == layers);
  return counts;
}

TEST_CASE("layers are dealt evenly, and what is left over goes to the first chunks", "[pipeline]") {
  using Counts = std::vector<std::int64_t>;
  CHECK(dealt(10, 3, {}) == Counts{4, 3, 3});
  CHECK(dealt(12, 3, {}) == Counts{4, 4, 4});
}

TEST_CASE("embedding and loss may count as layers", "[pipeline]") {
  using Counts = std::vector<std::int64_t>;
  CHECK(dealt(126, 16, {.split = {.counts_embedding = true, .counts_loss = true}}) ==
        Counts{7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 7});
  CHECK(dealt(11, 3, {.split = {.counts_loss = true}}) == Counts{4, 4, 3});
  CHECK(dealt(10, 2,
              {.schedule = "interleaved",
               .virtual_stages = 3,
               .split = {.counts_embedding = true, .counts_loss = true}}) == Counts{1, 2, 2, 2, 2, 1});
  // Of what is left over the first chunks get one each, counted layers included.
  CHECK(dealt(17, 4, {.schedule = "zb-v", .split = {.counts_embedding = true, .counts_loss = true}}) ==
        Counts{2, 3, 3, 2, 2, 2, 2, 1});
}

TEST_CASE("a chunk whose embedding or loss counts as its layer needs no other", "[pipeline]") {
  using Counts = std::vector<std::int64_t>;
  const LayerSplit both = {.counts_embedding = true, .counts_loss = true};
  CHECK(dealt(2, 4, {.split = both}) == Counts{0, 1, 1, 0});
  CHECK(dealt(4, 4, {.split = {.counts_loss = true}}) == Counts{2, 1, 1, 0});
  CHECK(dealt(3, 4, {.split = {.counts_embedding = true}}) == Counts{0, 1, 1, 1});
  CHECK(dealt(6, 4, {.schedule = "zb-v", .split = both}) == Counts{0, 1, 1, 1, 1, 1, 1, 0});
  CHECK(dealt(6, 4, {.schedule = "interleaved", .virtual_stages = 2, .split = both}) == Counts{0, 1, 1, 1, 1, 1, 1, 0});
  // Llama 3.1 405B on 128 chunks, Qwen3-235B on 32 stages of three.
  const Counts large = dealt(126, 16, {.schedule = "interleaved", .virtual_stages = 8, .split = both});
  CHECK(large.front() == 0);
  CHECK(large.back() == 0);
  CHECK(std::count(large.begin(), large.end(), 1) == 126);
  CHECK(std::ssize(dealt(94, 32, {.schedule = "interleaved", .virtual_stages = 3, .split = both})) == 96);
}

TEST_CASE("the first and the last stage may have layers of their own number", "[pipeline]") {
  using Counts = std::vector<std::int64_t>;
  CHECK(dealt(61, 16, {.split = {.first_stage = 4, .last_stage = 1}}) ==
        Counts{4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 1});
  CHECK(dealt(14, 3, {.schedule = "interleaved", .virtual_stages = 2, .split = {.first_stage = 2}}) ==
        Counts{1, 3, 3, 1, 3, 3});
  CHECK(dealt(9, 4, {.split = {.last_stage = 1}}) == Counts{3, 3, 2, 1});
  CHECK(dealt(5, 2, {.split = {.first_stage = 2, .last_stage = 3}}) == Counts{2, 3});
}

TEST_CASE("a layout says what every chunk has, in Megatron-LM's letters", "[pipeline]") {
  using Counts = std::vector<std::int64_t>;
  CHECK(read_layout("EttL").layers == Counts{2});
  CHECK(read_layout("Et*3|(tt|)*3mL").layers == Counts{3, 2, 2, 2, 1});
  CHECK(read_layout("E, t*2 | (t|t*2|)*2 ttL").layers == Counts{2, 1, 2, 1, 2, 2});
  const LayerLayout deepseek = read_layout("Et*3|(tt|)*29m|L");
  CHECK(deepseek.problem.empty());
  CHECK(dealt(62, 16, {.schedule = "interleaved", .virtual_stages = 2, .split = {.layout = deepseek.layers}}) ==
        deepseek.layers);
}

TEST_CASE("what is no layout says why", "[pipeline]") {
  const auto problem = [](const std::string& text) { return read_layout(text).problem; };
  CHECK(problem("Ett|xL") == "'x' where E, t, m, L, a bar or a parenthesis belongs");
  CHECK(problem("E(tt|L") == "a '(' that nothing closes");
  CHECK(problem("Ett)|L") == "a ')' that closes nothing");
  CHECK(problem("E" + std::string(100'000, '(')) == "more than 64 parentheses in each other");
  CHECK(problem("Et*|L") == "no number behind '*'");
  CHECK(problem("E((((t*999)*999)*999)*999)L") == "more than a million letters");
  CHECK(problem("Et*99999999999999999999L") == "more than a million letters");
  for (const std::string text : {"tt|L", "ttE|L", "Et|Et|L", ""}) {
    CHECK(problem(text) == "it has to begin with its only E, the embedding");
  }
  for (const std::string text : {"Ett", "EtL|t", "EtL|tL"}) {
    CHECK(problem(text) == "it has to end with its only L, head and loss");
  }
}

TEST_CASE("a split that leaves a chunk without layers is a problem", "[pipeline]") {
  const auto problem = [](std::int64_t layers, std::int64_t stages, const PipelineOptions& options) {
    return ChunkMap(options, stages).deal().problem(layers);
  };
  CHECK(problem(2, 3, {}) == "chunk 2 of 3 gets no layer");
  CHECK(problem(2, 4, {.split = {.counts_loss = true}}) == "chunk 3 of 4 gets no layer");
  CHECK(problem(5, 8, {.split = {.counts_embedding = true, .counts_loss = true}}) == "chunk 7 of 8 gets no layer");
  CHECK(problem(6, 2, {.split = {.first_stage = 2, .last_stage = 3}}) == "the stages get 5 of 6 layers");
  CHECK(problem(6, 3, {.split = {.first_stage = 5}}) == "chunk 2 of 3 gets no layer");
  CHECK(problem(6, 3, {.split = {.first_stage = 7}}) == "the stages get 7 of 6 layers");
  CHECK(problem(6, 3, {.split = {.layout = {3, 2, 0}}}) == "the layout has 5 of 6 layers");
  CHECK(problem(6, 4, {.split = {.layout = {3, 2, 1}}}) == "the layout has 3 chunks, the pipeline 4");
  CHECK(problem(6, 3, {.split = {.layout = {5, 0, 1}}}).empty());
  CHECK(problem(9, 2, {.schedule = "interleaved", .virtual_stages = 2, .split = {.first_stage = 3}}) ==
        "the 3 layers of the first stage do not divide into its 2 chunks");
}

TEST_CASE("schedules whose stages hold chunks of both ends have no first stage", "[pipeline]") {
  CHECK(ChunkMap({}, 4).in_turn());
  CHECK(ChunkMap({.schedule = "interleaved", .virtual_stages = 2}, 4).in_turn());
  CHECK_FALSE(ChunkMap({.schedule = "zb-v"}, 4).in_turn());
  CHECK_FALSE(ChunkMap({.schedule = "dualpipe"}, 4).in_turn());
}

TEST_CASE("1F1B: stage s begins with p - 1 - s forward passes, then one forward and one backward", "[pipeline]") {
  const Plan plan = plan_of(1, 4, alone(4));
  CHECK(order_of(plan, 3, {}, 0) == "F0 F1 F2 B0 F3 B1 B2 B3");
  CHECK(order_of(plan, 3, {}, 1) == "F0 F1 B0 F2 B1 F3 B2 B3");
  CHECK(order_of(plan, 3, {}, 2) == "F0 B0 F1 B1 F2 B2 F3 B3");
}

TEST_CASE("GPipe: all forward passes, then all backward passes", "[pipeline]") {
  const Plan plan = plan_of(1, 4, alone(3));
  for (const std::int64_t stage : {0, 1}) {
    CHECK(order_of(plan, 2, {"gpipe", 1}, stage) == "F0 F1 F2 B0 B1 B2");
  }
}

TEST_CASE("interleaved: p micro-batches go through a chunk before the next chunk's turn", "[pipeline]") {
  const Plan plan = plan_of(1, 4, alone(4));
  const PipelineOptions options{"interleaved", 2};
  // Warm-up: 2 (p - 1 - s) + (v - 1) p = 4 and 2 forward passes; the next one is the first that a backward follows.
  CHECK(order_of(plan, 2, options, 0) == "F0a F1a F0b F1b F2a B0b F3a B1b F2b B0a F3b B1a B2b B3b B2a B3a");
  CHECK(order_of(plan, 2, options, 1) == "F0a F1a F0b B0b F1b B1b F2a B0a F3a B1a F2b B2b F3b B3b B2a B3a");
}

TEST_CASE("ZB-H1: stage s keeps s weight gradients back, so that p micro-batches are in flight on all", "[pipeline]") {
  const Plan plan = plan_of(1, 4, alone(4));
  const PipelineOptions options{"zb-h1", 1};
  CHECK(order_of(plan, 3, options, 0) == "F0 F1 F2 B0 W0 F3 B1 W1 B2 W2 B3 W3");
  CHECK(order_of(plan, 3, options, 1) == "F0 F1 B0 F2 B1 W0 F3 B2 W1 B3 W2 W3");
  CHECK(order_of(plan, 3, options, 2) == "F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 W2 W3");
}

TEST_CASE("a pipeline of one stage runs whole micro-batches in the plan's order", "[pipeline]") {
  const Plan plan = plan_of(2, 4, {{{1}, 64}, {{0, 1}, 64}});
  const Pipeline pipeline(plan, 1, {"zb-h1", 1});
  CHECK(pipeline.orders()[1] == std::vector<PassId>{PassId(0), PassId(1)});
  CHECK(pipeline.pass(PassId(1)) == StagePass{MicroBatchId(1), 0, 0, PassKind::whole});
  CHECK_FALSE(pipeline.target(PassId(0)).has_value());
}

TEST_CASE("chunks in order go forward in order and backward in reverse, on one stage, too", "[pipeline][chunks]") {
  const Plan plan = test::chunks_in_order(8, {{64}, {64, 64, 64}, {64}});
  CHECK(order_of(plan, 1, {}, 0) == "F0 B0 F1 F2 F3 B3 B2 B1 F4 B4");
  // The stage before the last is one forward pass ahead of it.
  CHECK(order_of(plan, 2, {"1f1b", 1}, 1) == "F0 B0 F1 F2 F3 B3 B2 B1 F4 B4");
  CHECK(order_of(plan, 2, {"1f1b", 1}, 0) == "F0 F1 B0 F2 F3 F4 B3 B2 B1 B4");
  CHECK_THROWS_WITH(Pipeline(plan, 2, {"gpipe", 1}), Catch::Contains("chunks in order in a pipeline under gpipe"));
}

TEST_CASE("chunks in order: a rank whose micro-batches continue none runs 1F1B", "[pipeline][chunks]") {
  Plan plan = test::chunks_in_order(8, {{64, 64}});
  plan.ranks = 2;
  plan.schedule.emplace_back();
  for (int i = 0; i < 5; ++i) {
    plan.schedule[1].emplace_back(plan.micro_batches.size());
    plan.micro_batches.push_back({.group = {HdpRank(1)}, .spans = {{SequenceId(1), 64 * i, 64}}});
  }
  plan.sequence_tokens.push_back(64 * 5);
  const Plan plain = plan_of(1, 8, alone(5));
  const Pipeline pipeline(plan, 4, {"1f1b", 1});
  const auto places = [](const Pipeline& of, std::size_t rank, std::int64_t stage, std::size_t first) {
    std::vector<std::pair<std::size_t, PassKind>> all;
    for (const PassId id : of.orders()[of.worker(HdpRank(rank), stage).index()]) {
      all.emplace_back(of.pass(id).micro_batch.index() - first, of.pass(id).kind);
    }
    return all;
  };
  for (std::int64_t stage = 0; stage < 4; ++stage) {
    CHECK(places(pipeline, 1, stage, 2) == places(Pipeline(plain, 4, {"1f1b", 1}), 0, stage, 0));
  }
}

TEST_CASE("rings that stand closer on one rank than on another keep one order on both", "[pipeline]") {
  // Ranks 0 and 1 share the first and the last micro-batch; rank 1 has two of its own between them. By positions rank 0
  // would run F3 before B0, and rank 1 B0 before F3.
  const Plan plan = plan_of(2, 4, {{{0, 1}, 64}, {{1}, 64}, {{1}, 64}, {{0, 1}, 64}});
  CHECK(order_of(plan, 2, {}, 0, 1) == "F0 F1 B0 F2 B1 F3 B2 B3");
  CHECK(order_of(plan, 2, {}, 0, 0) == "F0 B0 F3 B3");
}

TEST_CASE("a circle in the plan's order is told before anything runs", "[pipeline]") {
  Plan plan = plan_of(2, 4, {{{0, 1}, 64}, {{0, 1}, 64}});
  std::swap(plan.schedule[1][0], plan.schedule[1][1]);
  CHECK_THROWS_WITH(Pipeline(plan, 2, {}), Catch::Contains("rank 0 waits in micro-batch 0 for 1 of its 2 ranks; "
                                                           "rank 1 waits in micro-batch 1 for 1 of its 2 ranks"));
}

TEST_CASE("activations go down the chunks and their gradients up", "[pipeline]") {
  const Plan plan = plan_of(1, 4, alone(1));
  const Pipeline pipeline(plan, 2, {"interleaved", 2});
  const auto id = [&](std::int64_t chunk, PassKind kind) { return pipeline.id_of(MicroBatchId(0), chunk, kind); };
  for (std::int64_t chunk = 0; chunk + 1 < 4; ++chunk) {
    CHECK(pipeline.target(id(chunk, PassKind::forward)) == id(chunk + 1, PassKind::forward));
    CHECK(pipeline.source(id(chunk + 1, PassKind::forward)) == id(chunk, PassKind::forward));
    CHECK(pipeline.target(id(chunk + 1, PassKind::backward)) == id(chunk, PassKind::backward));
    CHECK(pipeline.source(id(chunk, PassKind::backward)) == id(chunk + 1, PassKind::backward));
  }
  CHECK_FALSE(pipeline.source(id(3, PassKind::backward)).has_value());  // it follows its own forward pass
  CHECK_FALSE(pipeline.target(id(3, PassKind::forward)).has_value());
}

// Products of a program, loops unrolled.
std::size_t products(const MicroBatchProgram& program) {
  std::size_t count = 0;
  for (const Block& block : program.blocks) {
    for (const Instruction& i : block.body) {
      if (i.opcode != Opcode::dense) continue;
      count += program.dense[i.work].gemms.size() * static_cast<std::size_t>(block.iterations);
    }
  }
  return count;
}

TEST_CASE("the passes of a micro-batch do together what it does whole, in every schedule", "[pipeline]") {
  const Plan plan = plan_of(2, 5, {{{0, 1}, 4096}});
  LoweringOptions options{one_head_model(5), Mesh{.hdp = 2}};
  const std::size_t whole = products(Program(plan, options).micro_batch(MicroBatchId(0)));
  options.mesh.pp = 2;
  for (const PipelineOptions& pipeline : test::every_schedule(2)) {
    CAPTURE(pipeline.schedule);
    options.pipeline = pipeline;
    const Program program(plan, options);
    std::size_t sum = 0;
    for (std::size_t p = 0; p < program.pipeline().passes(); ++p) sum += products(program.pass(PassId(p)));
    CHECK(sum == whole);
  }
}

TEST_CASE("the passes of a micro-batch do together what it does whole where the ends have no layer", "[pipeline]") {
  const Plan plan = plan_of(2, 5, {{{0, 1}, 4096}});
  for (const std::int64_t zero : {1, 3}) {
    for (PipelineOptions pipeline : test::every_schedule(4)) {
      CAPTURE(pipeline.schedule, zero);
      const std::int64_t chunks = make_schedule(pipeline, 4)->chunks();
      LoweringOptions options{one_head_model(chunks - 2), Mesh{.hdp = 2}};
      options.recipe.zero = zero;
      const std::size_t whole = products(Program(plan, options).micro_batch(MicroBatchId(0)));
      pipeline.split = {.counts_embedding = true, .counts_loss = true};
      options.mesh.pp = 4;
      options.pipeline = pipeline;
      const Program program(plan, options);
      std::size_t sum = 0;
      for (std::size_t p = 0; p < program.pipeline().passes(); ++p) sum += products(program.pass(PassId(p)));
      CHECK(sum == whole);
      std::int64_t parameters = 0;
      for (std::int64_t stage = 0; stage < 4; ++stage) {
        parameters += parameters_of_stage(options.model, options.mesh, program.pipeline().chunk_map(), stage);
      }
      CHECK(parameters == parameter_count(options.model) * program.pipeline().chunk_map().copies());
    }
  }
}

TEST_CASE("two layers of every chunk stay on the device, and what leaves is copied, in every schedule", "[pipeline]") {
  Plan plan = plan_of(1, 6, {{{0}, 4096}});
  plan.micro_batches[0].offload = 1;
  for (PipelineOptions pipeline : test::every_schedule(2)) {
    CAPTURE(pipeline.schedule);
    pipeline.split.counts_loss = true;  // the last chunk has one layer less
    LoweringOptions options{one_head_model(23), Mesh{.hdp = 1, .pp = 2}};
    options.pipeline = pipeline;
    const Program program(plan, options);
    const ChunkMap& chunks = program.pipeline().chunk_map();
    const Bytes of_layer = kept_bytes(kept_tensors(options.model, {}), {.tokens = 4096});
    std::vector<double> copied(2);
    for (std::size_t p = 0; p < program.pipeline().passes(); ++p) {
      const MicroBatchProgram pass = program.pass(PassId(p));
      for (const Block& block : pass.blocks) {
        for (const Instruction& i : block.body) {
          if (i.opcode != Opcode::offload) continue;
          copied[static_cast<std::size_t>(program.pipeline().pass(PassId(p)).stage)] +=
              (pass.bytes[i.work] * i.runs(block.iterations)).gigabytes();
        }
      }
    }
    if (chunks.copies() > 1) continue;  // the micro-batch goes through one of them, the stage holds both
    for (std::int64_t stage = 0; stage < 2; ++stage) {
      const std::int64_t layers = layer_count(stage_shape(options.model, {}, chunks, stage).layers);
      const double leaves = 1 - resident_share_of_stage(chunks, 23, stage, 1);
      CHECK(copied[static_cast<std::size_t>(stage)] ==
            Approx(of_layer.gigabytes() * static_cast<double>(layers) * leaves));
    }
  }
}

TEST_CASE("the stages hold the model once, a tied table twice", "[pipeline]") {
  for (const bool tied : {false, true}) {
    Transformer model = one_head_model(5);
    model.tied_embeddings = tied;
    const Mesh mesh{.hdp = 1, .tp = 1, .pp = 3};
    std::int64_t sum = 0;
    for (std::int64_t stage = 0; stage < 3; ++stage) sum += parameters_of_stage(model, mesh, ChunkMap({}, 3), stage);
    CHECK(sum == parameter_count(model) + (tied ? model.vocabulary * model.hidden : 0));
  }
}

TEST_CASE("a message is the device's share of the hidden states", "[pipeline]") {
  const Plan plan = plan_of(2, 4, {{{0, 1}, 4096}});
  const LoweringOptions options{one_head_model(4), Mesh{.hdp = 2, .tp = 1, .pp = 2}};
  CHECK(Program(plan, options).message(PassId(0)) == Bytes(4096 / 2 * 64 * 2));  // tokens a rank, width, bf16
}

}  // namespace
}  // namespace hdpsim
