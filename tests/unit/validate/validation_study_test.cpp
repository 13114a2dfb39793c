#include "sim/validate/validation_study.h"

#include <nlohmann/json.hpp>

#include "tests/support/small_validation_set.h"
#include "tests/support/study_file.h"

namespace hdpsim {
namespace {

using test::changed;
using test::small_validation_set;
using test::StudyFile;

std::vector<std::string> problems_of(const std::string& text) {
  const StudyFile file(text);
  Catalog catalog(HDPSIM_SOURCE_DIR);
  return test::problems_of([&] { (void)load_validation(file.path(), catalog); });
}

TEST_CASE("a row becomes a study: packs of one micro-batch, a mesh, a cluster of as many GPUs", "[validation]") {
  const StudyFile file(small_validation_set);
  Catalog catalog(HDPSIM_SOURCE_DIR);
  const ValidationStudy validation = load_validation(file.path(), catalog);
  REQUIRE(validation.study.points.size() == 2);
  const PointSpec& first = validation.study.points[0].spec;
  CHECK(validation.set.cases[0].name == "tp 1 dp 8 micro_batch 2");  // what is the same in all rows is left out
  CHECK(first.cluster.devices == 8);
  CHECK(first.mesh.hdp == 8);
  CHECK(first.batch.context == 2 * 4096);
  CHECK(first.capacity == 2 * 4096);
  CHECK(first.batch.tokens_per_step == 16 * 4096);
  CHECK(validation.study.points[1].spec.mesh.hdp == 4);
  CHECK(validation.study.points[1].spec.mesh.tp == 2);
  CHECK(validation.set.cases[0].job == validation.set.cases[1].job);
  CHECK(validation.set.cases[0].line == "tp 1 dp 8 micro_batch 2 sequence 4Ki");  // all but the global batch
  CHECK(validation.set.cases[0].micro_batches == 1);                              // 16 sequences, 8 ranks, 2 each
  CHECK(validation.set.cases[1].micro_batches == 4);
  const Batch batch = validation.study.points[0].batches->step(0);
  CHECK(batch.sequences.size() == 16);
  for (const Sequence& sequence : batch.sequences) CHECK(sequence.tokens == 4096);
}

TEST_CASE("every case of a set is changed as a study is", "[validation]") {
  const StudyFile file(small_validation_set);
  Catalog catalog(HDPSIM_SOURCE_DIR);
  const ValidationStudy changed = load_validation(file.path(), catalog, {.set = {"mesh.zero=0"}, .without = {}});
  for (const StudyPoint& point : changed.study.points) CHECK(point.spec.recipe.zero == 0);
  const auto problems =
      test::problems_of([&] { (void)load_validation(file.path(), catalog, {.set = {"mesh.zeros=0"}, .without = {}}); });
  REQUIRE(problems.size() == 1);
  CHECK_THAT(problems[0], Catch::Contains("zeros"));
}

TEST_CASE("speed-ups are over the same case with what is unlike in `speedup_over`", "[validation]") {
  const std::string times =
      changed(small_validation_set, "step_time_s, tokens_per_s_per_gpu]", "step_time_s, speedup]");
  const std::string text =
      changed(changed(times, "4Ki, 2, ~]", "4Ki, 2, 1.5]"), "columns:", "speedup_over: {mesh.zero: 0}\ncolumns:");
  const StudyFile file(changed(text, "4Ki, 4, 2048]", "4Ki, 4, ~]"));
  Catalog catalog(HDPSIM_SOURCE_DIR);
  const auto rows = validate(load_validation(file.path(), catalog), {.jobs = 1});
  const StudyFile alone(small_validation_set);
  const auto bases =
      validate(load_validation(alone.path(), catalog, {.set = {"mesh.zero=0"}, .without = {}}), {.jobs = 1});
  REQUIRE(rows->size() == 3);  // two of the first case, one of the second
  CHECK(*rows->at(0).predicted != *bases->at(0).predicted);
  CHECK(*rows->at(1).predicted == Approx(*bases->at(0).predicted / *rows->at(0).predicted));
  CHECK(problems_of(changed(text, "mesh.zero: 0", "mesh.zeros: 0")).size() == 1);
}

TEST_CASE("savings of loaders' memory are over the same case with what is unlike in `speedup_over`", "[validation]") {
  const std::string loading =
      "loading: {style: actors, bytes_per_token: 4 B, tokens_per_s: 1M, network: 1 GB/s, sources: "
      "[{name: a, access: 1 GB}]}";
  const std::string times =
      changed(small_validation_set, "step_time_s, tokens_per_s_per_gpu]", "step_time_s, loader_memory_saving]");
  const std::string set = changed(changed(times, "4Ki, 2, ~]", "4Ki, 2, 1.5]"), "4Ki, 4, 2048]", "4Ki, 4, ~]");
  const std::string text = changed(changed(set, "  plans:", "  " + loading + "\n  plans:"),
                                   "columns:", "speedup_over: {loading.sources: [{name: a, access: 3 GB}]}\ncolumns:");
  Catalog catalog(HDPSIM_SOURCE_DIR);
  const StudyFile file(text);
  const auto rows = validate(load_validation(file.path(), catalog), {.jobs = 1});
  CHECK(*rows->at(1).predicted > 2);  // an open source is nearly all that a loader holds
  CHECK(*rows->at(1).predicted <= 3);
  CHECK(problems_of(changed(text, "  " + loading + "\n", "")).size() >= 1);
}

TEST_CASE("predictions of a set are those of a study with the same values", "[validation]") {
  const StudyFile file(small_validation_set);
  Catalog catalog(HDPSIM_SOURCE_DIR);
  const auto rows = validate(load_validation(file.path(), catalog), {.jobs = 2});
  REQUIRE(rows->size() == 3);
  const StudyFile same(R"(name: same
cluster: {preset: a100-rail-3tier, gpus: 8}
model: {preset: llama-7b}
profile: bytescale-implied
data: {lengths: {fixed: 4Ki}, context: 4Ki, tokens_per_step: 64Ki, steps: 1}
mesh: {tp: 2, capacity: 4Ki}
plans: [static]
)");
  const auto runs = run_study(same.load(), {});
  CHECK(*rows->at(1).predicted == runs->front().metrics.step_time_s.mean);
  CHECK(*rows->at(2).predicted == runs->front().metrics.tokens_per_s_per_gpu);
  CHECK(rows->at(2).quantity == "tokens_per_s_per_gpu");
  CHECK(rows->at(2).published == 2048);
}

TEST_CASE("cells may have units, and columns the names that frameworks give them", "[validation]") {
  std::string text = changed(small_validation_set, "micro_batch, global_batch, sequence", "mbs, gbs, seq");
  text = changed(text, "tokens_per_s_per_gpu]", "memory_gb]");
  text = changed(text, "4Ki, 2, ~]", "4Ki, 900 ms, ~]");
  const StudyFile file(changed(text, "4Ki, 4, 2048]", "4Ki, 4, 66.55 GiB]"));
  Catalog catalog(HDPSIM_SOURCE_DIR);
  const ValidationStudy validation = load_validation(file.path(), catalog);
  CHECK(validation.study.points[0].spec.batch.context == 2 * 4096);
  CHECK(validation.study.points[0].spec.batch.tokens_per_step == 16 * 4096);
  CHECK(validation.set.cases[0].published.at(0).value == Approx(0.9));
  CHECK(validation.set.cases[1].published.at(1).value == Approx(66.55 * (1 << 30) / 1e9));
  CHECK(problems_of(changed(text, "900 ms", "900 us/step")) ==
        std::vector<std::string>{"11:24: \"900 us/step\" is not a number"});
  const std::string twice = changed(text, "[tp, dp, mbs", "[micro_batch, dp, mbs");
  CHECK(problems_of(twice).front() == "9:28: the column 'micro_batch' is stated a second time here");
}

TEST_CASE("the dotted path of a short column says the same, and so does the study of all cases", "[validation]") {
  const auto first_of = [](const std::string& text) {
    const StudyFile file(text);
    Catalog catalog(HDPSIM_SOURCE_DIR);
    return load_validation(file.path(), catalog);
  };
  const std::string set =
      changed(changed(small_validation_set, "[1, 8, 2, 16", "[2, 4, 2, 16"), "[2, 4, 1", "[4, 2, 1");
  const ValidationStudy shortly = first_of(set);
  for (const auto& [from, to] : {std::pair("[tp, dp", "[mesh.tp, dp"), std::pair("[tp, dp", "[tp, mesh.hdp"),
                                 std::pair("sequence,", "data.lengths.fixed,")}) {
    CAPTURE(to);
    const ValidationStudy dotted = first_of(changed(set, from, to));
    for (std::size_t i = 0; i < 2; ++i) {
      const PointSpec& same = shortly.study.points[i].spec;
      const PointSpec& spec = dotted.study.points[i].spec;
      CHECK(spec.mesh.tp == same.mesh.tp);
      CHECK(spec.mesh.hdp == same.mesh.hdp);
      CHECK(spec.cluster.devices == same.cluster.devices);
      CHECK(spec.batch.context == same.batch.context);
      CHECK(spec.capacity == same.capacity);
    }
    CHECK(dotted.set.cases[0].job == dotted.set.cases[1].job);
  }
  const std::string in_study =
      changed(changed(set, "plans: [static]", "mesh: {tp: 2}\n  plans: [static]"), "[tp, dp", "[mesh.pp, dp");
  const ValidationStudy stated = first_of(changed(in_study, "[2, 4, 2", "[1, 4, 2"));
  CHECK(stated.study.points[0].spec.mesh.tp == 2);
  CHECK(stated.study.points[1].spec.mesh.pp == 4);
  CHECK(problems_of(changed(set, "[tp, dp", "[tp, mesh.tp")).front() ==
        "9:15: the column 'mesh.tp' is stated a second time here");
}

TEST_CASE("replicas are the GPUs that tp, pp and cp leave, where no column has them", "[validation]") {
  const std::string set =
      changed(changed(small_validation_set, "[tp, dp", "[tp, cluster.gpus"), "[2, 4, 1", "[2, 8, 1");
  const StudyFile file(set);
  Catalog catalog(HDPSIM_SOURCE_DIR);
  const ValidationStudy validation = load_validation(file.path(), catalog);
  CHECK(validation.study.points[0].spec.mesh.hdp == 8);
  CHECK(validation.study.points[1].spec.mesh.hdp == 4);
  CHECK(problems_of(changed(set, "[2, 8, 1", "[3, 8, 1")).front() ==
        "12:9: 'cluster.gpus' is 8, which is no multiple of 3");
}

TEST_CASE("virtual stages are interleaved, by whichever name, unless a schedule is named", "[validation]") {
  const std::string set = changed(changed(small_validation_set, "[tp, dp", "[pp, dp"), "[1, 8, 2, 16", "[2, 8, 1, 16");
  for (const std::string name : {"virtual_stages", "vpp", "mesh.virtual_stages"}) {
    CAPTURE(name);
    std::string text = changed(set, "tokens_per_s_per_gpu]", name + "]");
    text = changed(changed(text, "2, ~]", "2, 2]"), "4, 2048]", "4, 1]");
    const StudyFile file(text);
    Catalog catalog(HDPSIM_SOURCE_DIR);
    const ValidationStudy validation = load_validation(file.path(), catalog);
    CHECK(validation.study.points[0].spec.pipeline.schedule == "interleaved");
    CHECK(validation.study.points[0].spec.pipeline.virtual_stages == 2);
    CHECK(validation.study.points[1].spec.pipeline.schedule == "1f1b");
  }
}

TEST_CASE("values of the mesh and of plans say how a job is spread, and plans of one job are ranked", "[validation]") {
  std::string text = changed(small_validation_set, "micro_batch, global", "mesh.zero, mesh.cp_comm_type, global");
  text = changed(changed(text, "[1, 8, 2,", "[1, 8, 1, p2p,"), "[2, 4, 1,", "[2, 4, 2, all_gather,");
  const StudyFile file(text);
  Diagnostics found;
  const auto set = load_validation_set(file.path(), found);
  INFO(found.text());
  REQUIRE(set);
  CHECK(set->cases[0].job == set->cases[1].job);
  CHECK(set->cases[0].line != set->cases[1].line);
  const StudyFile other(changed(changed(text, "mesh.zero", "data.seed"), "all_gather", "p2p"));
  const auto jobs = load_validation_set(other.path(), found);
  REQUIRE(jobs);
  CHECK(jobs->cases[0].job != jobs->cases[1].job);
}

TEST_CASE("a title that nobody knows is the one problem of its set", "[validation]") {
  CHECK(problems_of(changed(small_validation_set, "global_batch", "globalbatch")) ==
        std::vector<std::string>{"9:32: there is no column 'globalbatch'"});
  CHECK(problems_of(changed(small_validation_set, "step_time_s, tokens_per_s_per_gpu", "step_tim_s, token_s")).size() ==
        2);
}

TEST_CASE("memory is published as what a device, its allocator and tensors have", "[validation]") {
  std::string text = changed(small_validation_set, "step_time_s, tokens_per_s_per_gpu]",
                             "memory_gb, memory_reserved_gb, memory_allocated_gb]");
  text = changed(text, "4Ki, 2, ~]", "4Ki, 80, 70, 60 GiB]");
  text = changed(text, "4Ki, 4, 2048]", "4Ki, 80, ~, ~]");
  const StudyFile file(changed(text, "  plans:", "  memory: {fragmentation: 0.25, reserve: 3 GB}\n  plans:"));
  Catalog catalog(HDPSIM_SOURCE_DIR);
  const auto rows = validate(load_validation(file.path(), catalog), {});
  CHECK(rows->at(2).published == Approx(60 * 1.073741824));
  CHECK(*rows->at(0).predicted == Approx(*rows->at(1).predicted + 3));
  CHECK(*rows->at(1).predicted == Approx(*rows->at(2).predicted * 1.25));
}

TEST_CASE("TFLOP/s and MFU count attention as the set says", "[validation]") {
  const std::string text =
      changed(small_validation_set, "step_time_s, tokens_per_s_per_gpu]", "tokens_per_s_per_gpu, tflops_per_gpu, mfu]");
  const auto predicted = [&](const std::string& counted) {
    std::string set = changed(text, "4Ki, 2, ~]", "4Ki, 2000, 100, 0.4]");
    set = changed(set, "4Ki, 4, 2048]", "4Ki, ~, 100, ~]");
    if (!counted.empty()) set = changed(set, "study:", "attention_flops: " + counted + "\nstudy:");
    const StudyFile file(set);
    Catalog catalog(HDPSIM_SOURCE_DIR);
    const ValidationStudy validation = load_validation(file.path(), catalog);
    const double peak = validation.study.points[0].spec.profile->datasheet.peak.per_second();
    const auto rows = validate(validation, {});
    CHECK(rows->at(1).unit == "TFLOP/s");
    CHECK(*rows->at(2).predicted == Approx(*rows->at(1).predicted * 1e12 / peak));
    return std::pair(*rows->at(0).predicted, *rows->at(1).predicted);
  };
  // 32 layers of LLaMA-7B with 8 of 32 key-value heads, and a head of 32,000 words; 6 FLOPs a parameter and token. A
  // pair of tokens has 4 FLOPs a column forward, and twice as many backward.
  const double projections = 2.0 * 4096 * 4096 + 2.0 * 4096 * 1024;
  const double parameters = 32 * (projections + 3.0 * 4096 * 11008) + 32000.0 * 4096;
  const auto [rate, none] = predicted("none");
  CHECK(none == Approx(rate * 6 * parameters / 1e12));
  const double pairs = 4097.0 / 2;  // of a token, in the mean of a causal sequence of 4,096
  const double attention = rate * 32 * 3 * 4 * pairs * 4096 / 1e12;
  CHECK(predicted("half").second == Approx(none + attention));
  CHECK(predicted("").second == Approx(none + attention));
  CHECK(predicted("full").second == Approx(none + 2 * attention));
}

TEST_CASE("a published plan that does not fit, as predicted, is told", "[validation]") {
  // 32 layers of 34 x 4096 bytes a token keep more than 80 GB of the activations of 64 x 4,096 tokens.
  const StudyFile file(changed(small_validation_set, "[1, 8, 2, 16, 4Ki", "[1, 8, 64, 512, 4Ki"));
  Catalog catalog(HDPSIM_SOURCE_DIR);
  const auto rows = validate(load_validation(file.path(), catalog), {});
  CHECK_FALSE(rows->at(0).fits);
  CHECK(rows->at(1).fits);
}

TEST_CASE("figures that a constant was taken from are named by column and case", "[validation]") {
  const std::string text = small_validation_set;
  const StudyFile file(text + "fitted: {step_time_s: [tp 2 dp 4 micro_batch 1]}\n");
  Catalog catalog(HDPSIM_SOURCE_DIR);
  const ValidationSet set = load_validation(file.path(), catalog).set;
  CHECK_FALSE(set.cases[0].published[0].fitted);
  CHECK(set.cases[1].published[0].fitted);
  CHECK_FALSE(set.cases[1].published[1].fitted);
  CHECK(problems_of(text + "fitted: {tokens_per_s_per_gpu: [tp 1 dp 8 micro_batch 2], tp: [x]}\n") ==
        std::vector<std::string>{
            "13:33: no figure 'tokens_per_s_per_gpu' of a case 'tp 1 dp 8 micro_batch 2' was published",
            "13:59: there is no column of figures 'tp'"});
}

TEST_CASE("all problems of a set are told at once, at their cells", "[validation]") {
  std::string text = changed(small_validation_set, "[1, 8, 2, 16, 4Ki, 2, ~]", "[3, 8, 2, none, 4Ki, -1, ~]");
  text = changed(text, "micro_batch", "microbatch");
  CHECK(problems_of(text) == std::vector<std::string>{
                                 "9:19: there is no column 'microbatch'",
                                 "11:15: \"none\" is not a whole number",
                                 "11:26: 'step_time_s' must be above 0",
                             });
  CHECK(problems_of(changed(small_validation_set, ", 4, 2048]", "]")) ==
        std::vector<std::string>{"12:5: a row has 7 cells, one a column; this one has 5"});
  CHECK(problems_of(changed(small_validation_set, "source: nobody\n", "")).size() == 1);
  CHECK(problems_of(changed(small_validation_set, "  - [2, 4, 1", "  - [1, 8, 2, 16, 4Ki, 2, ~]\n  - [2, 4, 1")) ==
        std::vector<std::string>{"12:5: the case 'tp 1 dp 8 micro_batch 2' is stated a second time here"});
}

TEST_CASE("what a study says against a row points at its cell", "[validation]") {
  CHECK(problems_of(changed(small_validation_set, "[1, 8, 2", "[3, 8, 2")) ==
        std::vector<std::string>{"11:6: 'tp' is 3, which does not divide the 32 heads of llama-7b"});
}

TEST_CASE("with several plans a figure names its own, and speed-ups need something to compare to", "[validation]") {
  const std::string two = changed(small_validation_set, "plans: [static]", "plans: [static, hdp-naive]");
  CHECK(problems_of(two) == std::vector<std::string>{"9:56: of which plan is 'step_time_s'?",
                                                     "9:69: of which plan is 'tokens_per_s_per_gpu'?"});
  const std::string named =
      changed(changed(two, "step_time_s,", "step_time_s static,"), "tokens_per_s_per_gpu]", "speedup hdp-balance]");
  const auto found = problems_of(named);
  REQUIRE(found.size() == 2);
  CHECK(found[0].find("a figure is of the plan 'hdp-balance', which the study has not") != std::string::npos);
  CHECK(found[1].find("speed-ups need the study's 'compare_to'") != std::string::npos);
}

TEST_CASE("what cannot be simulated yet is kept with its reason and does not hide the rest", "[validation]") {
  const std::string text = changed(changed(small_validation_set, "columns: [", "columns: [model.hf_config, "),
                                   "model: {preset: llama-7b}", "training: {sequence_parallel: false}");
  const StudyFile file(changed(changed(text, "[1, 8, 2", "[dense.json, 1, 8, 2"), "[2, 4", "[mixture.json, 2, 4"));
  const std::string shape = R"("hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
    "intermediate_size": 11008, "vocab_size": 32000)";
  file.add("dense.json", R"({"architectures": ["LlamaForCausalLM"], )" + shape + "}");
  file.add("mixture.json", R"({"architectures": ["MixtralForCausalLM"], "num_local_experts": 8,
    "num_experts_per_tok": 2, )" +
                               shape + "}");
  Catalog catalog(HDPSIM_SOURCE_DIR);
  const auto rows = validate(load_validation(file.path(), catalog), {});
  REQUIRE(rows->size() == 3);
  CHECK(rows->at(0).predicted);
  CHECK(rows->at(0).not_predicted.empty());
  CHECK_FALSE(rows->at(1).predicted);
  CHECK(rows->at(1).not_predicted == "mixture has experts, with which 'sequence_parallel' is known as true only");
}

TEST_CASE("every shipped set can be read, and is worth its name", "[validation]") {
  const auto name = GENERATE(as<std::string>{}, "bytescale", "bytescale-ablation", "korthikanti", "megatron-core-0.8",
                             "mosaicml-a100", "mosaicml-h100", "nemo-24.07", "nemo-long-context", "sc21",
                             "simumax-b200", "vtrain-multi-node", "vtrain-single-node");
  Diagnostics diagnostics;
  const auto set =
      load_validation_set(HDPSIM_SOURCE_DIR "/configs/validation/" + std::string(name) + ".yaml", diagnostics);
  INFO(diagnostics.text());
  REQUIRE(set);
  CHECK(set->name == name);
  CHECK(set->source.size() > 20);
}

TEST_CASE("kernels are chosen by the study: fp8 products where the profile has them", "[kernels]") {
  const std::string study = changed(test::good_study, "mesh:", "kernels: {linear: fp8}\nmesh:");
  const StudyFile without(study);
  CHECK(without.problems() == std::vector<std::string>{"10:19: the profile bytescale-implied has no 'gemm_fp8'"});
  const StudyFile with(changed(changed(study, "a100-rail-3tier", "h100-rail"), "bytescale-implied", "h100-published"));
  const Study read = with.load();
  const DeviceProfile& profile = *read.points[0].spec.profile;
  CHECK(profile.linear == ProductFormat::fp8);
  CHECK_FALSE(profile.unfused_attention);
  CHECK(lowering_of(read.points[0].spec).recipe.products == ProductFormat::fp8);
  const std::string on_h100 =
      changed(changed(study, "a100-rail-3tier", "h100-rail"), "bytescale-implied", "h100-published");
  CHECK(StudyFile(changed(on_h100, "linear: fp8", "linear: fp8_blocks")).problems().empty());
  CHECK(StudyFile(changed(on_h100, "linear: fp8", "linear: mxfp8")).problems() ==
        std::vector<std::string>{"10:19: the profile h100-published has no 'gemm_mxfp8'"});
}

TEST_CASE("kernels are chosen by the study: attention in Triton, launches by a graph", "[kernels]") {
  const std::string published = changed(test::good_study, "bytescale-implied", "a100-sxm-published");
  const auto spec_of = [&](const std::string& kernels) {
    const StudyFile file(changed(published, "mesh:", "kernels: " + kernels + "\nmesh:"));
    return file.load().points[0].spec;
  };
  const PointSpec eager = spec_of("{attention: flash}");
  const PointSpec chosen = spec_of("{attention: triton, launch: graphs}");
  const auto of = [&](OtherAttention kernel) {
    return eager.profile->other_attention[static_cast<std::size_t>(kernel)];
  };
  CHECK(chosen.profile->attention == of(OtherAttention::triton));
  CHECK(lowering_of(eager).recipe.host_issues);
  CHECK_FALSE(lowering_of(chosen).recipe.host_issues);
  const StudyFile without(changed(test::good_study, "mesh:", "kernels: {attention: triton}\nmesh:"));
  CHECK(without.problems() ==
        std::vector<std::string>{"10:22: the profile bytescale-implied has no 'attention_triton'"});
}

TEST_CASE("kernels are chosen by the study: every other attention of a profile by its name", "[kernels]") {
  const std::string study =
      changed(changed(test::good_study, "a100-rail-3tier", "h100-rail"), "bytescale-implied", "h100-published");
  for (std::size_t i = 0; i < other_attentions; ++i) {
    const std::string name(other_attention_name(static_cast<OtherAttention>(i)));
    const StudyFile file(changed(study, "mesh:", "kernels: {attention: " + name + "}\nmesh:"));
    const PointSpec spec = file.load().points[0].spec;
    INFO(name);
    CHECK_FALSE(spec.profile->attention.empty());
    CHECK(spec.profile->attention == spec.profile->other_attention[i]);
  }
}

TEST_CASE("parameters in fp32 are those of FSDP, and cast by products", "[mesh]") {
  const auto spec_of = [](const std::string& mesh) {
    return StudyFile(changed(test::good_study, "mesh: {", "mesh: {" + mesh + ", ")).load().points[0].spec;
  };
  CHECK(lowering_of(spec_of("zero: 3, parameters: fp32")).recipe.parameters == NumberType::fp32);
  CHECK(lowering_of(spec_of("zero: 3, parameters: fp32")).recipe.autocast());
  CHECK(spec_of("zero: 3, parameters: fp32").recipe.autocast());
  CHECK_FALSE(lowering_of(spec_of("zero: 3, parameters: bf16")).recipe.autocast());
  CHECK_FALSE(spec_of("zero: 3, parameters: bf16").recipe.autocast());
  CHECK(lowering_of(spec_of("zero: 3")).recipe.flat_gradients());
  CHECK_FALSE(lowering_of(spec_of("zero: 2")).recipe.flat_gradients());
  const StudyFile without(changed(test::good_study, "mesh: {", "training: {gather: bf16}\nmesh: {"));
  REQUIRE(without.problems().size() == 1);
  CHECK(without.problems()[0].ends_with("shards of parameters are gathered with zero: 3 alone"));
}

TEST_CASE("a mesh says how its framework shards, sums and overlaps", "[mesh]") {
  const StudyFile file(changed(test::good_study, "mesh: {",
                               "mesh: {sequence_parallel: false, zero: 0, gradients: bf16, overlap_grad_reduce: true, "
                               "overlap_param_gather: true, tp_comm_overlap: true, tp_gradient_overlap: true, "));
  const PointSpec spec = file.load().points[0].spec;
  const LoweringOptions lowering = lowering_of(spec);
  CHECK_FALSE(lowering.recipe.sequence_parallel);
  CHECK_FALSE(spec.recipe.sequence_parallel);
  CHECK(lowering.recipe.zero == 0);
  CHECK(lowering.recipe.gradient_bytes == 2);
  CHECK(spec.recipe.gradient_bytes == 2);
  CHECK(lowering.recipe.overlap_grad_reduce);
  CHECK(lowering.recipe.overlap_param_gather);
  CHECK(lowering.recipe.overlap_tp);
  CHECK(lowering.recipe.overlap_tp_gradients);
  CHECK(lowering.recipe.added_bytes() == 0);
}

TEST_CASE("kernels add up gradients, and compute the loss, where the study says so", "[mesh]") {
  const std::string separate =
      changed(test::good_study, "mesh: {",
              "memory: {loss: fp32}\nmesh: {gradients: bf16, gradient_accumulation_fusion: false, ");
  const LoweringOptions lowering = lowering_of(StudyFile(separate).load().points[0].spec);
  CHECK(lowering.recipe.added_bytes() == 2);
  CHECK(lowering.recipe.loss == Loss::fp32);
  CHECK(lowering_of(StudyFile(test::good_study).load().points[0].spec).recipe.loss == Loss::fused);
}

TEST_CASE("keys beside a model's preset replace those of its configuration", "[model]") {
  const StudyFile file(changed(test::good_study, "{preset: llama-7b}", "{preset: llama-7b, num_hidden_layers: 12}"));
  CHECK(file.load().points[0].spec.model.layers == 12);
  const StudyFile wrong(changed(test::good_study, "{preset: llama-7b}", "{preset: llama-7b, num_layers: 12}"));
  CHECK(wrong.problems() == std::vector<std::string>{"3:27: the configuration of llama-7b has no key 'num_layers'"});
}

}  // namespace
}  // namespace hdpsim
