#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "sim/model/memory.h"
#include "sim/model/parameters.h"
#include "sim/program/activations_in_flight.h"
#include "sim/program/chunk_map.h"
#include "tests/support/catch.h"
#include "tests/support/every_schedule.h"
#include "tests/support/model_presets.h"

namespace hdpsim {
namespace {

using test::preset;

constexpr PipelineOptions one_f_one_b{};
constexpr PipelineOptions gpipe{.schedule = "gpipe"};
constexpr PipelineOptions zb_h1{.schedule = "zb-h1"};

PipelineOptions interleaved(std::int64_t virtual_stages) {
  return {.schedule = virtual_stages > 1 ? "interleaved" : "1f1b", .virtual_stages = virtual_stages};
}

std::int64_t most_on(std::int64_t stages, std::int64_t stage, const PipelineOptions& options,
                     std::int64_t micro_batches) {
  return most_chunks_in_flight(*make_schedule(options, stages), micro_batches).at(static_cast<std::size_t>(stage));
}

bool holds_all(std::int64_t stages, const PipelineOptions& options) {
  return holds_all_micro_batches(*make_schedule(options, stages));
}

DeviceShape shape_of(const Transformer& model, const DeviceShape& shape, std::int64_t stage,
                     const PipelineOptions& options = {}) {
  return stage_shape(model, shape, ChunkMap(options, shape.pp), stage);
}

/// Counts along the passes of one stage alone.
std::int64_t counted_on(const Schedule& schedule, std::int64_t stage, std::int64_t micro_batches) {
  std::int64_t held = 0;
  std::int64_t most = 0;
  for (const SlotPass& pass : schedule.order(stage, micro_batches)) {
    if (keeps_activations(pass.kind)) ++held;
    most = std::max(most, held);
    if (releases_activations(pass.kind)) --held;
  }
  return most;
}

TEST_CASE("counts of all stages are those of each stage, under every schedule and for every number of micro-batches",
          "[memory]") {
  for (const std::int64_t stages : {2, 3, 8, 9, 12, 17, 31, 32, 64, 90, 131}) {
    for (const PipelineOptions& options : test::every_schedule(stages)) {
      const auto schedule = make_schedule(options, stages);
      for (const std::int64_t micro_batches : {std::int64_t{1}, std::int64_t{2}, stages / 3 + 1, stages - 1, stages,
                                               stages + 1, 3 * stages / 2, 2 * stages}) {
        CAPTURE(options.schedule, stages, micro_batches);
        std::vector<std::int64_t> each;
        for (std::int64_t stage = 0; stage < stages; ++stage) {
          each.push_back(counted_on(*schedule, stage, micro_batches));
        }
        CHECK(most_chunks_in_flight(*schedule, micro_batches) == each);
      }
    }
  }
}

TEST_CASE("stages share the model: embedding first, head and last norm last, one layer more in front", "[memory]") {
  const Transformer model = preset("llama2-7b");
  std::int64_t held = 0;
  std::vector<std::int64_t> layers;
  for (std::int64_t stage = 0; stage < 5; ++stage) {
    const DeviceShape shape = shape_of(model, {.pp = 5}, stage);
    layers.push_back(layer_count(shape.layers));
    held += DeviceMemory(model, shape, {}).states()[MemoryPart::parameters].count();
  }
  CHECK(layers == std::vector<std::int64_t>{7, 7, 6, 6, 6});
  CHECK(held == 2 * parameter_count(model));
}

TEST_CASE("a stage has the layers of its chunks, where those of the model do not divide among them", "[memory]") {
  Transformer model = preset("llama2-7b");
  model.layers = 9;  // in four chunks 3, 2, 2, 2
  CHECK(layer_count(shape_of(model, {.pp = 2}, 0, interleaved(2)).layers) == 3 + 2);
  CHECK(layer_count(shape_of(model, {.pp = 2}, 1, interleaved(2)).layers) == 2 + 2);
  model.layers = 10;  // 3, 3, 2, 2
  CHECK(layer_count(shape_of(model, {.pp = 2}, 0, interleaved(2)).layers) == 3 + 2);
  model.layers = 11;  // 3, 3, 3, 2: six and five, as for two stages of one chunk
  CHECK(layer_count(shape_of(model, {.pp = 2}, 0, interleaved(2)).layers) == 3 + 3);
}

TEST_CASE("later stages of 1F1B hold one micro-batch less each, and never more than there are", "[memory]") {
  for (std::int64_t stage = 0; stage < 4; ++stage) {
    CHECK(most_on(4, stage, one_f_one_b, 100) == 4 - stage);
    CHECK(most_on(4, stage, one_f_one_b, 2) == std::min<std::int64_t>(2, 4 - stage));
  }
  CHECK(most_on(1, 0, one_f_one_b, 8) == 1);
}

TEST_CASE("interleaved stages hold 2 (p - s - 1) + (v - 1) p + 1 chunks", "[memory]") {
  for (const std::int64_t p : {2, 4, 7}) {
    for (const std::int64_t v : {2, 3}) {
      for (std::int64_t s = 0; s < p; ++s) {
        CAPTURE(p, v, s);
        CHECK(most_on(p, s, interleaved(v), 1000) == 2 * (p - s - 1) + (v - 1) * p + 1);
      }
    }
  }
}

TEST_CASE("GPipe holds every micro-batch of a step on every stage", "[memory]") {
  for (std::int64_t stage = 0; stage < 4; ++stage) {
    CHECK(most_on(4, stage, gpipe, 3) == 3);
    CHECK(most_on(4, stage, gpipe, 1'000'000) == 1'000'000);
  }
  CHECK(holds_all(4, gpipe));
  CHECK_FALSE(holds_all(1, gpipe));
  for (const PipelineOptions& other : {one_f_one_b, zb_h1, interleaved(2)}) CHECK_FALSE(holds_all(4, other));
}

TEST_CASE("what a schedule holds at all it holds by 2 p micro-batches, or else ever more", "[memory]") {
  for (const std::int64_t stages : {2, 3, 4, 8, 10}) {
    for (const PipelineOptions& options : test::every_schedule(stages)) {
      CAPTURE(stages, options.schedule);
      const auto schedule = make_schedule(options, stages);
      for (std::int64_t stage = 0; stage < stages; ++stage) {
        std::int64_t held = 0;
        std::int64_t most = 0;
        for (const SlotPass& pass : schedule->order(stage, 7 * stages)) {
          most = std::max(most, held += keeps_activations(pass.kind) ? 1 : 0);
          held -= releases_activations(pass.kind) ? 1 : 0;
        }
        CHECK(held == 0);
        CHECK(most_on(stages, stage, options, 7 * stages) == most);
      }
    }
  }
}

TEST_CASE("ZB-H1 holds p micro-batches on every stage: on stage s, s more than 1F1B", "[memory]") {
  for (std::int64_t stage = 0; stage < 4; ++stage) {
    CHECK(most_on(4, stage, zb_h1, 100) == most_on(4, stage, one_f_one_b, 100) + stage);
  }
}

// Korthikanti et al. 2022 (arXiv 2205.05198), table 3: s = 2048, t = 8 throughout.
struct Korthikanti {
  const char* model;
  std::int64_t layers;
  std::int64_t pp;
  std::int64_t virtual_stages;
  std::int64_t micro_batch;
  std::int64_t batch;
};
constexpr Korthikanti korthikanti[] = {{"gpt-22b", 48, 1, 1, 4, 4},
                                       {"gpt-175b", 96, 8, 3, 1, 64},
                                       {"gpt-530b", 105, 35, 3, 1, 280},
                                       {"gpt-1t", 128, 64, 1, 1, 512}};

TEST_CASE("the first stage holds all layers of a micro-batch, and (p - 1) / (p v) more when interleaved", "[memory]") {
  constexpr std::int64_t s = 2048;
  constexpr std::int64_t t = 8;
  for (const Korthikanti& row : korthikanti) {
    CAPTURE(row.model);
    const Transformer model = preset(row.model);
    REQUIRE(model.layers == row.layers);
    const auto of = [](std::int64_t count) { return static_cast<double>(count); };
    const double scores = 5 * of(model.heads) * of(s) / of(model.hidden);
    const double layers = of(s * row.micro_batch * model.hidden * model.layers) / of(t) * (34 + scores);
    const double more = row.virtual_stages == 1 ? 0 : of(row.pp - 1) / of(row.pp * row.virtual_stages);
    const double published = layers * (1 + more);

    const Recipe recipe{.sequence_parallel = true, .flash_attention = false, .dropout = true};
    const DeviceShape shape = shape_of(model, {.tp = t, .pp = row.pp}, 0, interleaved(row.virtual_stages));
    const DeviceMemory first(model, shape, recipe);
    const std::int64_t chunks = most_on(row.pp, 0, interleaved(row.virtual_stages), row.batch / row.micro_batch);
    const Bytes held =
        first.kept({.tokens = s * row.micro_batch, .pairs = static_cast<double>(s * s * row.micro_batch)}) * chunks /
        row.virtual_stages;
    CHECK(static_cast<double>(held.count()) == Approx(published));
  }
}

/// Training with equal micro-batches of one sequence, in the terms of other frameworks.
struct TrainingSetting {
  std::int64_t tp = 1;
  std::int64_t pp = 1;
  std::int64_t dp = 1;
  std::int64_t cp = 1;
  std::int64_t micro_batches = 1;  ///< Per pipeline and step.
  std::int64_t sequence = 0;       ///< Tokens.
};

// The memory of a device of one stage at its fullest moment. Context parallelism ran as all-to-all.
MemoryParts stage_memory(const Transformer& model, const TrainingSetting& setting, std::int64_t stage) {
  const std::int64_t tokens = setting.sequence / setting.cp;
  const DeviceShape shape{.tp = setting.tp, .pp = setting.pp, .pool = setting.dp * setting.cp};
  const DeviceMemory device(model, shape_of(model, shape, stage), {.key_exchange = KeyExchange::all_to_all});
  const std::int64_t others = most_on(setting.pp, stage, one_f_one_b, setting.micro_batches) - 1;
  const MemoryLoad load{.tokens = tokens, .ranks = setting.cp};
  return device.beside(device.peak(load), device.kept(load) * others);
}

MemoryParts peak_memory(const Transformer& model, const TrainingSetting& setting) {
  MemoryParts fullest;
  for (std::int64_t stage = 0; stage < setting.pp; ++stage) {
    const MemoryParts peak = stage_memory(model, setting, stage);
    if (peak.total() > fullest.total()) fullest = peak;
  }
  return fullest;
}

double gib(Bytes bytes) {
  return static_cast<double>(bytes.count()) / (1024.0 * 1024 * 1024);
}

// Measured peaks of torch.cuda.max_memory_allocated over all ranks: SimuMax v1.2 (Apache-2.0), one node of 8 x B200,
// docs/b200/b200_release_v1.2_summary.{md,json}, Megatron-LM with Transformer Engine 2.11. bf16, distributed optimizer,
// sequence parallelism, fused cross-entropy, no recompute, micro-batches of one sequence; the models are cut to 12 and
// 4 layers. Peaks do not depend on the number of micro-batches: 4, 8 and 32 were run where there is no context
// parallelism.
struct Measured {
  const char* model;
  TrainingSetting setting;
  double gib;
};

constexpr Measured measured[] = {
    {"llama3-70b", {.tp = 1, .pp = 2, .dp = 4, .micro_batches = 4, .sequence = 4096}, 66.55},
    {"llama3-70b", {.tp = 2, .dp = 4, .micro_batches = 4, .sequence = 4096}, 60.68},
    {"llama3-70b", {.tp = 4, .dp = 2, .micro_batches = 4, .sequence = 4096}, 39.07},
    {"llama3-70b", {.tp = 8, .dp = 1, .micro_batches = 4, .sequence = 4096}, 28.29},
    {"llama3-405b", {.tp = 1, .pp = 2, .dp = 4, .micro_batches = 4, .sequence = 4096}, 87.08},
    {"llama3-405b", {.tp = 2, .dp = 4, .micro_batches = 4, .sequence = 4096}, 81.59},
    {"llama3-405b", {.tp = 4, .dp = 2, .micro_batches = 4, .sequence = 4096}, 52.89},
    {"llama3-405b", {.tp = 8, .dp = 1, .micro_batches = 4, .sequence = 4096}, 38.57},
    {"llama3-70b", {.tp = 2, .cp = 4, .micro_batches = 4, .sequence = 32'768}, 68.43},
    {"llama3-70b", {.tp = 1, .cp = 8, .micro_batches = 4, .sequence = 32'768}, 104.51},
    {"llama3-405b", {.tp = 2, .cp = 4, .micro_batches = 4, .sequence = 32'768}, 87.03},
    {"llama3-405b", {.tp = 1, .cp = 8, .micro_batches = 4, .sequence = 32'768}, 139.22},
    {"llama3-70b", {.tp = 2, .cp = 4, .micro_batches = 4, .sequence = 131'072}, 112.67},
    {"llama3-70b", {.tp = 1, .cp = 8, .micro_batches = 4, .sequence = 131'072}, 147.99},
    {"llama3-405b", {.tp = 2, .cp = 4, .micro_batches = 4, .sequence = 131'072}, 118.13}};

Transformer llama3(std::string_view name) {
  Transformer model = preset("llama3-70b");
  model.layers = 12;
  if (name == "llama3-70b") return model;
  model.layers = 4;  // the shape of the runs: their launcher, run_pretrain_llama3.sh, has 16 groups of queries
  model.hidden = 16'384;
  model.ffn_hidden = 53'248;
  model.heads = 128;
  model.kv_heads = 16;
  return model;
}

TEST_CASE("predicted peaks are within 0.5 % of those measured on eight B200", "[memory]") {
  for (const Measured& row : measured) {
    const Transformer model = llama3(row.model);
    const TrainingSetting& at = row.setting;
    const MemoryParts peak = peak_memory(model, at);
    const double predicted = gib(peak.allocated());
    const double error = predicted / row.gib - 1;
    INFO(fmt::format("{} tp {} pp {} dp {} cp {} at {}: predicted {:.2f} GiB, measured {:.2f} GiB, {:+.2f} %",
                     row.model, at.tp, at.pp, at.dp, at.cp, at.sequence, predicted, row.gib, 100 * error));
    CHECK(std::abs(error) < 0.005);
  }
}

TEST_CASE("each stage of the measured pipelines has its own peak", "[memory]") {
  // The same source, by rank, in MiB: stage 0 on ranks 0 to 3, stage 1 on ranks 4 to 7.
  struct Stages {
    const char* model;
    double mib[2];
  };
  for (const Stages& row : {Stages{"llama3-70b", {68'149.2, 64'479.5}}, Stages{"llama3-405b", {88'688.9, 89'173.4}}}) {
    const Transformer model = llama3(row.model);
    for (const std::int64_t stage : {0, 1}) {
      CAPTURE(row.model, stage);
      const MemoryParts peak = stage_memory(model, {.pp = 2, .dp = 4, .micro_batches = 4, .sequence = 4096}, stage);
      CHECK(gib(peak.allocated()) * 1024 == Approx(row.mib[stage]).epsilon(0.005));
    }
  }
}

}  // namespace
}  // namespace hdpsim
