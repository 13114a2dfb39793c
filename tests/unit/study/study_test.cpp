#include "sim/study/study.h"

#include <filesystem>

#include "sim/document/values.h"
#include "sim/profile/device_spread.h"
#include "sim/study/study_paths.h"
#include "tests/support/catch.h"
#include "tests/support/study_file.h"

namespace hdpsim {
namespace {

using test::changed;
using test::good_study;
using test::Problems;
using test::StudyFile;

// The problems of the good study with one thing changed.
Problems problems_with(const std::string& from, const std::string& to) {
  return StudyFile(changed(good_study, from, to)).problems();
}

TEST_CASE("what a study leaves out has its default", "[study]") {
  const Study study = StudyFile(good_study).load();
  REQUIRE(study.points.size() == 1);
  const PointSpec& point = study.points[0].spec;
  CHECK(point.capacity == 8192);
  CHECK(point.mesh.hdp == 16);
  CHECK(point.mesh.pp == 1);
  CHECK(point.batch.seed == 1);
  CHECK(point.batch.overlong == Overlong::split);
  CHECK(point.grain == Grain::fluid);
  CHECK(point.connections.communicators == Communicators::one);
  CHECK_FALSE(point.connections.cold);
  CHECK_FALSE(study.compare_to);
  CHECK(line_of(*study.resolved.find("mesh")) ==
        "{tp: 2, pp: 1, capacity: 8Ki, placement: strided, groups: one_communicator, connections: warm, "
        "zero: 1}");
  CHECK(line_of(*study.resolved.find("training")) == "{recompute: none, loss: fused}");
  CHECK(line_of(*study.resolved.find("memory")) == "{fragmentation: 0.047, reserve: auto}");
  CHECK(point.recipe.loss == Loss::fused);
  CHECK_FALSE(point.recipe.reserve);
  CHECK(study.output.memory_ranks == 8);
  CHECK(study.resolved.find("cluster")->find("node") != nullptr);  // written out in full
}

TEST_CASE("what a study says wrongly of memory is told with its place", "[study]") {
  const Problems problems =
      StudyFile(changed(good_study, "mesh: {tp: 2}",
                        "mesh: {tp: 2, zero: 4}\nmemory: {gaps: 1, fragmentation: 2, reserve: 3}\n"
                        "training: {loss: fusd}\noutput: {memory: {ranks: -1}}"))
          .problems();
  REQUIRE(problems.size() == 6);
  const char* places[] = {"10:21: ", "11:10: ", "11:34: ", "11:46: ", "12:18: ", "13:26: "};
  for (std::size_t i = 0; i < problems.size(); ++i) CHECK_THAT(problems[i], Catch::StartsWith(places[i]));
}

TEST_CASE("attention that adds up the steps of a ring itself saves the time of merges", "[study]") {
  const StudyPoint separate = std::move(StudyFile(good_study).load().points.at(0));
  const StudyPoint joined = std::move(StudyFile(good_study).load({"training.separate_merge=false"}).points.at(0));
  CHECK(lowering_of(separate.spec).recipe.separate_merge);
  CHECK_FALSE(lowering_of(joined.spec).recipe.separate_merge);
  CHECK(joined.work.step_token < separate.work.step_token);
  CHECK(joined.work.per_token == separate.work.per_token);  // what one rank does alone has no merges
}

TEST_CASE("memory follows the recomputation of the study", "[study]") {
  const PointSpec point = StudyFile(good_study).load({"training.recompute=full"}).points.at(0).spec;
  CHECK(point.recipe.recompute == Recompute::full);
}

TEST_CASE("the resolved study is the same study", "[study]") {
  const StudyFile file(good_study);
  const Study study = file.load({"data.context=32Ki", "sweep={data.seed: [1, 2]}"});
  file.add("study.yaml", to_yaml(study.resolved));
  const Study again = file.load();
  REQUIRE(again.points.size() == 2);
  CHECK(again.points[1].spec.batch.context == 32768);
  CHECK(again.points[1].identity == study.points[1].identity);
  CHECK(to_yaml(again.resolved) == to_yaml(study.resolved));
}

TEST_CASE("runs of different points, plans and files have different identities", "[study]") {
  const std::string text = changed(good_study, "{preset: github, edges: upper}", "{file: lengths.txt}");
  const StudyFile file(text);
  file.add("lengths.txt", "100\n200\n");
  const std::string first = file.load().points[0].identity;
  CHECK(file.load({"data.steps=3"}).points[0].identity != first);
  CHECK(file.load({"data.seed=1"}).points[0].identity == first);  // the default
  file.add("lengths.txt", "100\n201\n");
  CHECK(file.load().points[0].identity != first);
}

TEST_CASE("points share a world as long as cluster, profile and mesh are the same", "[study]") {
  const StudyFile file(good_study);
  const Study contexts = file.load({"sweep={data.context: [8Ki, 16Ki]}"});
  CHECK(contexts.points[0].world == contexts.points[1].world);
  const Study clusters = file.load({"sweep={cluster.gpus: [32, 64]}"});
  CHECK(clusters.points[0].world != clusters.points[1].world);
  CHECK(clusters.points[1].spec.mesh.hdp == 32);
}

TEST_CASE("all devices of a run compute like the expected slowest of them", "[study][noise]") {
  const StudyFile file(good_study);
  const auto factor = [&](const std::vector<std::string>& settings) {
    return file.load(settings).points[0].spec.profile->factors[CostFamily::gemm];
  };
  const double spread = 0.01;
  const std::int64_t devices = file.load().points[0].spec.mesh.devices();
  CHECK(factor({"noise={spread: 0.01}"}) == 1 + spread * expected_largest_normal(devices));
  CHECK(factor({"noise={spread: 0}"}) == 1);
  CHECK(factor({"noise={device: {cv: 0.01}}"}) == 1);
}

TEST_CASE("a study says what backward computes again", "[study][recompute]") {
  const StudyFile file(changed(good_study, "{tp: 2}", "{tp: 2}\ntraining: {recompute: full}"));
  const Study study = file.load();
  CHECK(study.points[0].spec.recipe.recompute == Recompute::full);
  CHECK(lowering_of(study.points[0].spec).recipe.recompute == Recompute::full);
  const Study both = file.load({"sweep={training.recompute: [none, selective]}"});
  CHECK(both.points[0].spec.recipe.recompute == Recompute::none);
  CHECK(both.points[1].spec.recipe.recompute == Recompute::selective);
  CHECK(problems_with("{tp: 2}", "{tp: 2}\ntraining: {recompute: some}") ==
        std::vector<std::string>{"11:23: there is no way to recompute activations 'some'"});
  const Study modules = file.load({"sweep={training.recompute: [full, [norm, mlp], []]}"});
  REQUIRE(modules.points.size() == 3);
  CHECK(modules.points[1].spec.recipe.recompute == Recompute{LayerModule::norm, LayerModule::mlp});
  CHECK(modules.points[1].spec.recipe.recompute == modules.points[1].spec.recipe.recompute);
  CHECK(modules.points[2].spec.recipe.recompute == Recompute::none);
  // The model has no experts; all problems are told at once.
  CHECK(problems_with("{tp: 2}", "{tp: 2}\ntraining: {recompute: [mpl, norm, experts]}") ==
        std::vector<std::string>{"11:24: there is no module to recompute 'mpl'",
                                 "11:35: no layer of llama-7b has experts"});
}

TEST_CASE("a study says who writes the kernels of layers, and what they keep", "[study][recompute]") {
  const StudyFile file(good_study);
  const auto recipe = [&](const std::vector<std::string>& settings) {
    return file.load(settings).points.at(0).spec.recipe;
  };
  CHECK(recipe({"training.recompute=per_operation"}).recompute == Recompute::per_operation);
  CHECK(recipe({"kernels.layers=eager"}).recompute == Recompute::none);
  // Compiled layers compute norms and activations again, also where the study says more.
  const Recompute compiled{LayerModule::norm, LayerModule::activation};
  CHECK(recipe({"kernels.layers=compiled"}).recompute == compiled);
  CHECK(recipe({"kernels.layers=compiled", "training.recompute=per_operation"}).recompute == Recompute::per_operation);
  CHECK(recipe({"kernels.layers=compiled", "training.recompute=full"}).recompute == Recompute::full);
  const Study repeated = file.load({"training.repeat_keys=true"});
  CHECK(repeated.points.at(0).spec.model.repeats_keys);
  for (const LossForm& form : loss_forms) {
    CHECK(recipe({"training.loss=" + std::string(form.word)}).loss == form.loss);
  }
  const StudyFile experts(changed(changed(good_study, "llama-7b", "mixtral-8x7b"), "{tp: 2}",
                                  "{tp: 2}\ntraining: {recompute: per_operation}"));
  CHECK_THAT(experts.problems().at(0), Catch::Contains("of which 'per_operation' is not known"));
}

TEST_CASE("a study says how groups are made and whether they have been made before", "[study][connections]") {
  const StudyFile file(changed(good_study, "{tp: 2}", "{tp: 2, groups: communicators, connections: cold}"));
  const Study study = file.load();
  CHECK(study.points[0].spec.connections.communicators == Communicators::per_group);
  CHECK(study.points[0].spec.connections.cold);
  CHECK(study.run_info(0, 0).setting ==
        "llama-7b on 32 x A100-80GB, hdp 16 x tp 2 with a communicator for each group, capacity 8Ki, 2 cold steps of "
        "1Mi tokens");
  const Study both = file.load({"sweep={mesh.connections: [cold, warm]}"});
  CHECK(both.points[0].world != both.points[1].world);
  CHECK(both.points[0].make_world()->machine().set_up.has_value());
  CHECK_FALSE(both.points[1].make_world()->machine().set_up.has_value());
  CHECK(both.points[0].identity == study.points[0].identity);
  CHECK(both.points[1].identity != study.points[0].identity);
  CHECK(problems_with("{tp: 2}", "{tp: 2, groups: comunicators, connections: lukewarm}") ==
        Problems{"10:23: there is no way to make groups 'comunicators'",
                 "10:50: there is no state of connections 'lukewarm'"});
}

TEST_CASE("rings use their own NICs or all, between devices that have met", "[study]") {
  const Study study = StudyFile(changed(good_study, "{tp: 2}", "{tp: 2, ring_nics: all}")).load();
  CHECK(study.points[0].make_world()->machine().ring_nics == NicUse::all);
  CHECK(StudyFile(good_study).load().points[0].make_world()->machine().ring_nics == NicUse::own);
  CHECK(problems_with("{tp: 2}", "{tp: 2, ring_nics: all, connections: cold}") ==
        Problems{"10:26: in a cold step it is not known which devices meet first to pass on parts of messages"});
}

TEST_CASE("a policy that stands twice is told apart by its options", "[study]") {
  const Study study =
      StudyFile(changed(good_study, "[static, hdp-naive]", "[static: {cp: 8}, static: {cp: 16}]")).load();
  CHECK(study.plans[0].name == "static {cp: 8}");
  CHECK(study.plans[1].name == "static {cp: 16}");
  CHECK(problems_with("[static, hdp-naive]", "[static, static]") ==
        Problems{"11:17: the plan 'static' is stated a second time here"});
  CHECK(StudyFile(changed(good_study, "[static, hdp-naive]", "[{}, {}]")).problems().size() == 3);  // and no policies
}

TEST_CASE("more plans than anyone compares are refused as a whole", "[study]") {
  std::string many = "[static";
  for (int i = 0; i < 1000; ++i) many += ", static";
  CHECK(problems_with("[static, hdp-naive]", many + "]") == Problems{"11:8: 1001 plans are more than 1000"});
}

TEST_CASE("unknown keys are told wherever they stand", "[study]") {
  CHECK(problems_with("steps: 2", "steps: 2\n  stepps: 3") == Problems{"10:3: the data has no key 'stepps'"});
  CHECK(problems_with("name: good", "name: good\nnam: x") == Problems{"2:1: the study has no key 'nam'"});
  CHECK(problems_with("{tp: 2}", "{tp: 2, cp: 4}") == Problems{"10:15: the mesh has no key 'cp'"});
}

TEST_CASE("a key that stands twice is told", "[study]") {
  CHECK(problems_with("steps: 2", "steps: 2\n  steps: 3") ==
        Problems{"10:3: the key 'steps' is stated a second time here"});
}

TEST_CASE("the mesh must have as many devices as the cluster", "[study]") {
  CHECK(problems_with("{tp: 2}", "{tp: 2, hdp: 15}") ==
        Problems{"10:20: tp x hdp x pp = 2 x 15 x 1 = 30, but the cluster has 32 GPUs"});
  CHECK(problems_with("{tp: 2}", "{tp: 64}") ==
        Problems{"10:12: 'tp' is 64, which does not divide the 32 heads of llama-7b",
                 "10:12: tp x hdp x pp = 64 x 1 x 1 = 64, but the cluster has 32 GPUs"});
  CHECK(problems_with("{tp: 2}", "{tp: 2, pp: 3}") ==
        Problems{"10:19: tp x hdp x pp = 2 x 5 x 3 = 30, but the cluster has 32 GPUs"});
}

TEST_CASE("a pipeline has a schedule that goes with its chunks, and a layer for each of them", "[study]") {
  CHECK(problems_with("{tp: 2}", "{tp: 2, pp: 4, schedule: zb-h1, capacity: 1Mi}").empty());
  CHECK(problems_with("{tp: 2}", "{tp: 2, pp: 4, schedule: {name: interleaved}, virtual_stages: 2, capacity: 1Mi}")
            .empty());
  CHECK(problems_with("{tp: 2}", "{tp: 2, pp: 1, schedule: interleaved, virtual_stages: 64, capacity: 1Mi}").empty());
  CHECK(problems_with("{tp: 2}", "{tp: 2, pp: 4, schedule: 1f1}") == Problems{"10:32: there is no schedule '1f1'"});
  CHECK(problems_with("{tp: 2}", "{tp: 2, pp: 4, virtual_stages: 2}") ==
        Problems{"10:38: 'virtual_stages' is 2, but the schedule '1f1b' has one chunk of layers a stage"});
  CHECK(problems_with("{tp: 2}", "{tp: 2, pp: 4, schedule: interleaved}") ==
        Problems{"10:32: the schedule 'interleaved' needs 'virtual_stages' of 2 or more"});
  CHECK(problems_with("{tp: 2}", "{tp: 1, pp: 32, capacity: 1Mi}").empty());
  CHECK(problems_with("{tp: 2}", "{tp: 1, pp: 16, schedule: interleaved, virtual_stages: 4}") ==
        Problems{"10:19: 'pp' is 16 with 4 virtual stages, but llama-7b has 32 layers"});
}

TEST_CASE("layers of the first and the last stage must leave every chunk a layer", "[study]") {
  const auto with = [](const std::string& keys) {
    return problems_with("{tp: 2}", "{tp: 1, pp: 16, capacity: 1Mi, " + keys + "}");
  };
  CHECK(with("account_for_embedding: true, account_for_loss: true").empty());
  // 34 on 32 chunks, of which the first has one layer, and on 48.
  CHECK(problems_with("{tp: 2}",
                      "{tp: 1, pp: 16, account_for_embedding: true, account_for_loss: true, "
                      "schedule: interleaved, virtual_stages: 2, capacity: 1Mi}")
            .empty());
  CHECK(problems_with("{tp: 2}",
                      "{tp: 1, pp: 16, account_for_embedding: true, account_for_loss: true, "
                      "schedule: interleaved, virtual_stages: 3, capacity: 1Mi}") ==
        Problems{"10:19: 'pp' is 16 with 3 virtual stages, but llama-7b has 32 layers"});
  CHECK(with("first_stage_layers: 1, last_stage_layers: 3").empty());
  CHECK(problems_with("{tp: 2}", "{tp: 2, pp: 1, first_stage_layers: 32}").empty());
  CHECK(problems_with("{tp: 2}", "{tp: 2, pp: 1, first_stage_layers: 3}") ==
        Problems{"10:42: 'first_stage_layers' is 3, but the only stage has all 32 layers"});
  CHECK(with("first_stage_layers: 18") ==
        Problems{"10:58: the 32 layers of llama-7b cannot be dealt to 16 stages so: chunk 15 of 16 gets no layer"});
  CHECK(with("first_stage_layers: 1, account_for_embedding: true") ==
        Problems{"10:58: the layers of this stage are stated, and something else counts as one of them"});
  CHECK(with("last_stage_layers: 3, virtual_stages: 2, schedule: interleaved") ==
        Problems{"10:57: the 32 layers of llama-7b cannot be dealt to 16 stages so: the 3 layers of the last stage do "
                 "not divide into its 2 chunks"});
  CHECK(with("layout: \"Ettt|(tt|)*14tL\"").empty());
  CHECK(with("layout: \"Ettt|(tt|)*14tL\", account_for_loss: true") ==
        Problems{"10:46: the layout says already what each stage has"});
  CHECK(with("layout: \"Ett|L\"") == Problems{"10:46: the 32 layers of llama-7b cannot be dealt to 16 stages so: the "
                                              "layout has 2 chunks, the pipeline 16"});
  CHECK(with("layout: Ett") ==
        Problems{"10:46: 'layout' is no layout of layers: it has to end with its only L, head and loss"});
  CHECK(problems_with("{tp: 2}", "{tp: 2, pp: 1, layout: \"Ett|t*30L\"}") ==
        Problems{"10:30: the only stage has all 32 layers in one chunk"});
  CHECK(with("last_stage_layers: 3, schedule: zb-v") ==
        Problems{"10:57: with the schedule 'zb-v' no stage is the first or the last alone"});
}

TEST_CASE("a cut of tokens goes with the ways in which keys travel that it needs, and with layers that see all tokens",
          "[study][cut]") {
  const auto with = [](const std::string& exchange, const std::string& cut) {
    return problems_with("{tp: 2}", "{cp_comm_type: " + exchange + ", cp_cut: " + cut + ", tp: 2}");
  };
  for (const std::string exchange : {"p2p", "all_gather", "group_cast"}) CHECK(with(exchange, "per_pack").empty());
  for (const std::string exchange : {"all_gather", "group_cast"}) CHECK(with(exchange, "dispatch").empty());
  CHECK(with("all_gather", "adaptive").empty());
  CHECK(with("a2a", "per_document").empty());
  CHECK(with("a2a", "per_pack") ==
        Problems{"10:35: with cp_comm_type: a2a ranks compute their heads of all tokens, whoever holds these"});
  CHECK(with("burst", "per_document").empty());
  CHECK(with("burst", "per_pack") == Problems{"10:37: where queries pass around a ring, it is not known which of "
                                              "unequal ranks is the busiest"});
  CHECK(with("p2p", "dispatch") == Problems{"10:35: keys of dispatched chunks do not pass around a ring"});
  CHECK(with("p2p", "adaptive") == Problems{"10:35: the adaptive cut is known with all keys gathered alone"});
  CHECK(with("group_cast", "adaptive") == Problems{"10:42: the adaptive cut is known with all keys gathered alone"});
  CHECK(StudyFile(changed(changed(good_study, "llama-7b", "gpt-oss-20b"), "{tp: 2}", "{cp_cut: per_pack, tp: 2}"))
            .problems() == Problems{"10:16: gpt-oss-20b has layers that do not see all tokens before, which are cut "
                                    "per document alone"});
}

TEST_CASE("ranks gather keys among which queries choose, and share them in no other way", "[study][indexer]") {
  const auto with = [](const std::string& mesh) {
    return StudyFile(changed(changed(good_study, "llama-7b", "deepseek-v3.2"), "{tp: 2}", mesh));
  };
  CHECK(with("{tp: 2}").load().points[0].spec.recipe.key_exchange == KeyExchange::all_gather);
  CHECK(with("{tp: 2, cp_comm_type: all_gather}").problems().empty());
  CHECK(with("{tp: 2, cp_comm_type: group_cast}").problems() ==
        Problems{"10:29: queries of deepseek-v3.2 choose among the keys of all ranks of a group, which must have "
                 "gathered them"});
}

TEST_CASE("ranks attend for each other where all layers have full attention and a dense MLP, and recompute nothing",
          "[study][served]") {
  const std::string served = changed(good_study, "hdp-naive", "distca");
  CHECK(StudyFile(served).problems().empty());
  CHECK_THAT(StudyFile(changed(served, "{tp: 2}", "{tp: 2}\ntraining: {recompute: full}")).problems().at(0),
             Catch::EndsWith("ranks cannot attend for each other: backward recomputes activations, write recompute: "
                             "none"));
  CHECK_THAT(StudyFile(changed(served, "llama-7b", "gpt-oss-20b")).problems().at(0),
             Catch::EndsWith("gpt-oss-20b has layers that do not see all tokens before"));
  CHECK_THAT(StudyFile(changed(served, "llama-7b", "mixtral-8x7b")).problems().at(0),
             Catch::EndsWith("not all layers of mixtral-8x7b have attention and a dense MLP"));
}

TEST_CASE("a capacity holds at least a token and a step at least a sequence", "[study]") {
  CHECK(problems_with("{tp: 2}", "{tp: 2, capacity: 0}") ==
        Problems{"10:25: 'capacity' is 0, it must be from 1 to 1Gi"});
  CHECK(problems_with("tokens_per_step: 1Mi", "tokens_per_step: 32Ki") ==
        Problems{"8:20: a step of 32Ki tokens cannot hold a sequence of the context, 64Ki"});
}

TEST_CASE("the profile must be of the cluster's device", "[study]") {
  CHECK(problems_with("bytescale-implied", "h100-published") ==
        Problems{"4:10: the profile is of a H100-80GB, the cluster has A100-80GB"});
}

TEST_CASE("a study without a profile has the only one of its cluster's device, and states it", "[study]") {
  const std::string silent =
      changed(changed(good_study, "profile: bytescale-implied\n", ""), "a100-rail-3tier", "h100-rail");
  const Study study = StudyFile(silent).load();
  CHECK(study.points.at(0).spec.profile->name == "h100-published");
  CHECK(study.resolved.find("profile")->text == "h100-published");
  const std::string stated =
      changed(changed(good_study, "bytescale-implied", "h100-published"), "a100-rail-3tier", "h100-rail");
  CHECK(study.run_info(0, 0).profile == StudyFile(stated).load().run_info(0, 0).profile);
  // An A100 is none of those that figures of training imply.
  const Study of_a100 = StudyFile(changed(good_study, "profile: bytescale-implied\n", "")).load();
  CHECK(of_a100.points.at(0).spec.profile->name == "a100-sxm-published");
  CHECK(StudyFile(silent).problems({"cluster.device=Z1"}) ==
        Problems{"1:1: the study names no profile, and none is of a Z1"});
}

TEST_CASE("a sweep over clusters takes the profile of each, and states none", "[study]") {
  const std::string text =
      changed(good_study, "profile: bytescale-implied\n", "") + "sweep: {cluster.preset: [h100-rail, h200-rail]}\n";
  const Study study = StudyFile(text).load();
  CHECK(study.points.at(0).spec.profile->name == "h100-published");
  CHECK(study.points.at(1).spec.profile->name == "h200-published");
  CHECK(study.resolved.find("profile") == nullptr);
}

TEST_CASE("lengths may be the path of a file", "[study]") {
  const StudyFile study(changed(good_study, "lengths: {preset: github, edges: upper}", "lengths: mine.csv"));
  study.add("mine.csv", "doc,n_tokens\n1,4096\n2,65536\n");
  const Study loaded = study.load();
  CHECK(loaded.points.at(0).spec.lengths.trace->tokens == std::vector<std::int64_t>{4096, 65536});
  CHECK(loaded.points.at(0).batches->use(1)->column == "n_tokens");
  CHECK(loaded.resolved.find("data")->find("lengths")->text == (study.folder() / "mine.csv").string());
  // The contents count, not the way in which they are named.
  const StudyFile in_full(changed(good_study, "preset: github", "file: mine.csv"));
  in_full.add("mine.csv", "doc,n_tokens\n1,4096\n2,65536\n");
  CHECK(in_full.load().points.at(0).spec.fingerprint == loaded.points.at(0).spec.fingerprint);
  CHECK(StudyFile(changed(good_study, "lengths: {preset: github, edges: upper}", "lengths: none.csv"))
            .problems()
            .at(0)
            .starts_with("6:12: there is no file "));
}

TEST_CASE("a file of lengths is read at random by the seed of the data, unless the study or a replay keeps its order",
          "[study]") {
  const StudyFile study(changed(good_study, "{preset: github, edges: upper}", "{file: sorted.txt}"));
  std::string sorted;
  for (int length = 1; length <= 2000; ++length) sorted += fmt::format("{}\n", length);
  study.add("sorted.txt", sorted);
  const std::vector<std::string> small = {"data.context=2000", "data.tokens_per_step=100000"};
  const auto first_step = [&](std::vector<std::string> overrides, bool replays = false) {
    Catalog catalog(HDPSIM_SOURCE_DIR);
    if (replays) catalog.keep_order_of_files();
    overrides.insert(overrides.end(), small.begin(), small.end());
    return load_study(study.path(), overrides, catalog).points.at(0).batches->step(0).sequences;
  };
  const auto in_file = first_step({"data.lengths.order=file"});
  CHECK(in_file.front().tokens == 1);
  CHECK(in_file.size() > 400);  // 1 + ... + 446 tokens are 100,000
  const auto shuffled = first_step({});
  CHECK(shuffled.size() < 150);  // of 1,000 tokens on average
  CHECK(first_step({"data.seed=2"}) != shuffled);
  CHECK(first_step({}) == shuffled);
  CHECK(first_step({}, true) == in_file);
  CHECK(first_step({"data.lengths.order=shuffle"}, true) == shuffled);
  CHECK(study.problems({"data.lengths={preset: github, order: file}"}).at(0).find("order") != std::string::npos);
}

TEST_CASE("the order of a file is drawn once for its points, whatever else a sweep changes", "[study]") {
  const StudyFile study(changed(good_study, "{preset: github, edges: upper}", "{file: mine.txt}"));
  study.add("mine.txt", "100\n200\n300\n400\n");
  const Study swept = study.load({"sweep={data.context: [8Ki, 16Ki]}"});
  CHECK(swept.points[0].spec.lengths.order == swept.points[1].spec.lengths.order);
  const Study seeds = study.load({"sweep={data.seed: [1, 2]}"});
  CHECK(seeds.points[0].spec.lengths.order != seeds.points[1].spec.lengths.order);
  study.add("mine.txt", "step,length\n0,100\n1,200\n");
  CHECK(study.load({"data.lengths.format=csv"}).points[0].spec.lengths.order == nullptr);
}

TEST_CASE("a step of more sequences than are simulated is told where its tokens are stated, before it is made",
          "[study]") {
  const auto problems = StudyFile(changed(good_study, "{preset: github, edges: upper}", "{fixed: 1}"))
                            .problems({"data.context=256Mi", "data.tokens_per_step=256Mi"});
  REQUIRE(problems.size() == 1);
  CHECK_THAT(problems[0], Catch::Contains("a step has about 268M sequences: at most 64Mi are simulated"));
  CHECK(StudyFile(changed(good_study, "{preset: github, edges: upper}", "{fixed: 1Mi}"))
            .problems({"data.context=1", "data.tokens_per_step=1000000000000"})
            .at(0)
            .find("sequences: at most 64Mi are simulated") != std::string::npos);
}

TEST_CASE("what a study names must exist", "[study]") {
  CHECK(problems_with("preset: github", "preset: gitub") == Problems{"6:21: there is no length preset 'gitub'"});
  CHECK(problems_with("{preset: llama-7b}", "{hf_config: none.json}").at(0).starts_with("3:20: there is no file "));
  CHECK(
      problems_with("profile: bytescale-implied", "profile: ./none.yaml").at(0).starts_with("4:10: there is no file "));
  CHECK(
      problems_with("{preset: github, edges: upper}", "{file: none.csv}").at(0).starts_with("6:19: there is no file "));
}

TEST_CASE("what is wrong at every point of a sweep is told once", "[study]") {
  const std::string text = changed(good_study, "steps: 2", "steps: many") + "sweep: {data.context: [1Ki, 2Ki, 0]}\n";
  CHECK(StudyFile(text).problems() ==
        Problems{"9:10: \"many\" is not a whole number", "12:34: 'context' is 0, it must be from 1 to 1Gi"});
}

TEST_CASE("a sweep with a typing error in its path is told at the sweep", "[study]") {
  const std::string text = std::string(good_study) + "sweep: {data.contxt: [1Ki]}\n";
  CHECK(StudyFile(text).problems() == Problems{"12:23: the data has no key 'contxt'"});
}

TEST_CASE("compare_to names one of the plans", "[study]") {
  CHECK(StudyFile(std::string(good_study) + "compare_to: hdp-naiv\n").problems() ==
        Problems{"12:13: there is no plan 'hdp-naiv'"});
}

TEST_CASE("compare_to may ask for a baseline that is tuned", "[study]") {
  const Study study = StudyFile(std::string(good_study) + "compare_to: {static: tuned}\n").load();
  CHECK(study.compare_to == "static");
  CHECK(study.tunes_baseline);
  CHECK_FALSE(StudyFile(std::string(good_study) + "compare_to: static\n").load().tunes_baseline);
  CHECK(StudyFile(std::string(good_study) + "compare_to: {hdp-naiv: tuned}\n").problems() ==
        Problems{"12:14: there is no plan 'hdp-naiv'"});
  CHECK(StudyFile(std::string(good_study) + "compare_to: {static: best}\n").problems() ==
        Problems{"12:22: there is no mesh of a baseline 'best'"});
  CHECK(StudyFile(std::string(good_study) + "compare_to: {static: tuned, hdp-naive: tuned}\n").problems() ==
        Problems{"12:13: speed-ups are over one plan"});
}

TEST_CASE("experts need no words of their own, and a study says where they go", "[study]") {
  const std::string text = changed(good_study, "llama-7b", "mixtral-8x7b");
  const Study plain = StudyFile(text).load();
  CHECK(plain.points.at(0).spec.experts.layout == ExpertLayout{});
  CHECK(plain.resolved.find("moe") == nullptr);
  const Study study = StudyFile(changed(text, "tp: 2", "tp: 2, ep: 8") +
                                "moe: {across: padding, capacity_factor: 1.25, routing: {zipf: 1, seed: 3}}\n")
                          .load();
  const PointSpec& spec = study.points.at(0).spec;
  CHECK(spec.mesh.ep == 8);
  CHECK(spec.experts.across == ExpertSpan::padding);
  CHECK(spec.experts.layout.capacity_factor == 1.25);
  CHECK(spec.experts.layout.shares == zipf_shares(*spec.model.moe, 1, 3));
  CHECK(spec.setting().find("tp 2 x ep 8 (padding)") != std::string::npos);
  const Study cut = StudyFile(changed(text, "tp: 2", "tp: 4, ep: 2, etp: 2")).load();
  CHECK(cut.points.at(0).spec.setting().find("tp 4 x ep 2 x etp 2") != std::string::npos);
}

TEST_CASE("what is wrong with experts is told at once, each at its place", "[study]") {
  const std::string nine = changed(good_study, "preset: llama-7b", "preset: mixtral-8x7b, num_experts_per_tok: 9");
  CHECK(StudyFile(nine + "moe: {capacity_factor: -1}\n").problems() ==
        Problems{"3:52: 9 experts a token, but the model has 8",
                 "12:24: 'capacity_factor' is -1, it must be from 0.01 to 100000"});
  const std::string eight = changed(good_study, "llama-7b", "mixtral-8x7b");
  CHECK(StudyFile(changed(eight, "tp: 2", "tp: 2, ep: 16")).problems() ==
        Problems{"10:19: 'ep' is 16, which does not divide the 8 experts of mixtral-8x7b",
                 "10:19: 'ep' is 16, but a rank has 2 devices in a stage: the expert group reaches over 8 ranks"});
  CHECK(StudyFile(changed(eight, "tp: 2", "tp: 8, ep: 6")).problems() ==
        Problems{"10:19: 'ep' is 6, which does not divide the 8 experts of mixtral-8x7b",
                 "10:19: 'ep' is 6, 'tp' is 8: one must be a multiple of the other"});
  CHECK(StudyFile(changed(good_study, "tp: 2", "tp: 2, ep: 2") + "moe: {across: waves}\n").problems() ==
        Problems{"10:19: 'ep' is 2, but llama-7b has no experts", "12:6: llama-7b has no experts"});
  CHECK(StudyFile(changed(eight, "tp: 2", "tp: 4, ep: 2, etp: 3")).problems() ==
        Problems{"10:19: 'ep' is 2, and 'etp' 3, a group of 6 devices; 'tp' is 4: one must be a multiple of the other",
                 "10:27: 'etp' is 3, which does not divide the 14336 columns of an expert of mixtral-8x7b",
                 "10:27: 'etp' is 3, which does not divide 'tp', 4"});
  CHECK(StudyFile(changed(eight, "tp: 2", "tp: 4, etp: 2")).problems() ==
        Problems{"10:20: 'etp' is 2, but with ep: 1 each expert is cut over tp, 4 devices"});
  CHECK(StudyFile(changed(eight, "tp: 2", "tp: 4, ep: 2, etp: 2") + "moe: {dispatch: per_node}\n").problems() ==
        Problems{"10:27: 'etp' is 2, but a dispatcher that sends tokens once to each node does not cut experts yet"});
  CHECK(StudyFile(eight + "moe: {across: wave, capacity_factor: 0, routing: {zipf: -1}}\n").problems() ==
        Problems{"12:15: there is no way across ranks 'wave'",
                 "12:38: 'capacity_factor' is 0, it must be from 0.01 to 100000",
                 "12:57: 'zipf' is -1, it must be from 0 to 100"});
}

TEST_CASE("a recipe under which experts are not known is refused at each key that makes it one", "[study]") {
  const std::string eight = changed(good_study, "llama-7b", "mixtral-8x7b");
  const auto with = [&](const std::string& tp) {
    return changed(eight, "{tp: 2}",
                   "{tp: " + tp + ", zero: 3}\ntraining: {gradients: bf16, sequence_parallel: false}");
  };
  CHECK(StudyFile(with("2")).problems() ==
        Problems{"11:48: mixtral-8x7b has experts, with which 'sequence_parallel' is known as true only"});
  CHECK(StudyFile(with("1")).problems().empty());  // no device has another part of the tokens
  CHECK(StudyFile(changed(eight, "{tp: 2}", "{tp: 2, zero: 1}\ntraining: {gradients: fp32}")).problems().empty());
}

TEST_CASE("ranks shard in groups that divide them, where something is sharded", "[study]") {
  const auto with = [](const std::string& mesh) { return changed(good_study, "tp: 2", "tp: 2, " + mesh); };
  const StudyFile good(with("shard_ranks: 4"));
  CHECK(good.problems().empty());
  CHECK(good.load().points.at(0).spec.mesh.shard_ranks == 4);
  CHECK(StudyFile(with("shard_ranks: 5")).problems() ==
        Problems{"10:28: 'shard_ranks' is 5, which does not divide the 16 ranks"});
  CHECK(StudyFile(with("shard_ranks: 4, zero: 0")).problems() == Problems{"10:28: with zero: 0 ranks shard nothing"});
  CHECK(StudyFile(changed(with("shard_ranks: 4"), "llama-7b", "mixtral-8x7b")).problems() == Problems{});
  const auto experts = [&](const std::string& mesh) {
    return changed(changed(with(mesh), "llama-7b", "mixtral-8x7b"), "tp: 2", "tp: 2, ep: 8") + "moe: {across: waves}\n";
  };
  CHECK(StudyFile(experts("shard_ranks: 4")).problems().empty());
  CHECK(StudyFile(experts("shard_ranks: 2")).problems().empty());  // each device has its experts whole
}

TEST_CASE("tokens travel to experts in fp8 only where experts multiply in fp8", "[study]") {
  const std::string eight = changed(changed(good_study, "llama-7b", "mixtral-8x7b"), "tp: 2", "tp: 2, ep: 2");
  const std::string h100 =
      changed(changed(eight, "a100-rail-3tier", "h100-rail"), "bytescale-implied", "h100-published") +
      "moe: {dispatch: per_node, fp8_sent: true}\n";
  CHECK(StudyFile(h100).problems() == Problems{"12:37: tokens travel in fp8, but experts multiply in bf16"});
  const StudyFile fp8(changed(h100, "mesh:", "kernels: {linear: fp8}\nmesh:"));
  CHECK(fp8.problems().empty());
  const ExpertLayout layout = fp8.load().points.at(0).spec.experts.layout;
  CHECK(layout.fp8_sent);
  CHECK(layout.dispatch == ExpertDispatch::per_node);
}

TEST_CASE("the load of experts can be a file of counts", "[study]") {
  const std::string text = changed(good_study, "llama-7b", "mixtral-8x7b") + "moe: {routing: {file: loads.json}}\n";
  const StudyFile file(text);
  file.add("loads.json", "[1, 1, 1, 1, 1, 1, 1, 3]");
  CHECK(file.load().points.at(0).spec.experts.layout.shares.at(7) == Approx(0.3));
  file.add("loads.json", "[1, 2, -3]");
  CHECK(file.problems() == Problems{"1:1: the load must be a list of 8 numbers, one an expert, found 3 of them"});
  file.add("loads.json", "[1, 0, 0, 0, 0, 0, 0, -3]");
  CHECK(file.problems() ==
        Problems{"1:2: expert 0 has 100.0 % of all copies: a token takes 2 different experts, so none has more than "
                 "50.0 %",
                 "1:23: a load is -3, it must be from 0 to 1e+15"});
}

TEST_CASE("compression of what travels to experts has one rate, stated or measured", "[study]") {
  const std::string eight =
      changed(changed(good_study, "llama-7b", "mixtral-8x7b"), "tp: 2", "tp: 2, ep: 2") + "moe: {compression: ";
  const auto compression = [&](const std::string& text) {
    return StudyFile(eight + text + "}\n").load().points.at(0).spec.experts.layout.compression;
  };
  CHECK_FALSE(compression("none").has_value());
  // Hashes look at all 4,096 columns of a copy.
  CHECK(compression("{hashes: 4, rate: 0.2}") == ExpertCompression{.rate = 0.2, .hashes = 4, .columns = 4096});
  CHECK(compression("{rate: 1, columns: 64, free: true}") == ExpertCompression{1, 6, 64, true});
  CHECK(compression("{similarity: 1, alike: 8}")->rate == 1.0 / 8);
  const double alike = compression("{similarity: 0.99}")->rate;
  CHECK(alike < compression("{similarity: 0.9}")->rate);
  CHECK(alike > compression("{similarity: 0.99, hashes: 2}")->rate);
  const StudyFile file(eight + "{file: vectors.json}}\n");
  file.add("vectors.json", "[[1, 2, 3], [2, 4, 6], [-1, 0, 5], [0.5, 1, 1.5]]");
  CHECK(file.load().points.at(0).spec.experts.layout.compression->rate == 2.0 / 4);
  const auto first = file.load().points.at(0).spec.fingerprint;
  file.add("vectors.json", "[[1, 2, 3], [2, 4, 6], [2, 4, 6], [0.5, 1, 1.5]]");
  CHECK(file.load().points.at(0).spec.fingerprint != first);
}

TEST_CASE("compression that cannot be is reported where it stands", "[study]") {
  const std::string experts = changed(good_study, "llama-7b", "mixtral-8x7b");
  const std::string eight = changed(experts, "tp: 2", "tp: 2, ep: 2");
  const auto problems = [](const std::string& study, const std::string& moe) {
    return StudyFile(study + "moe: {" + moe + "}\n").problems();
  };
  const auto wrong = [&](const std::string& text) { return problems(eight, "compression: {" + text + "}"); };
  CHECK(wrong("rate: 0, hashes: 0") ==
        Problems{"12:27: 'rate' is 0, it must be from 0.001 to 1", "12:38: 'hashes' is 0, it must be from 1 to 32"});
  CHECK(wrong("rate: 1.5") == Problems{"12:27: 'rate' is 1.5, it must be from 0.001 to 1"});
  CHECK(wrong("hashes: 6") ==
        Problems{"12:20: compression has a 'rate', or a 'similarity' or a 'file' of which it is measured"});
  CHECK(wrong("rate: 0.2, similarity: 0.9") ==
        Problems{"12:20: compression has a 'rate', or a 'similarity' or a 'file' of which it is measured"});
  CHECK(wrong("rate: 0.2, alike: 4") == Problems{"12:39: 'alike' belongs to a 'similarity'"});
  CHECK(wrong("rate: 0.2, columns: 5000") == Problems{"12:41: hashes look at 5000 columns, and a copy has 4096"});
  CHECK(problems(experts, "compression: {rate: 0.2}") ==
        Problems{"12:20: compression is of what travels to experts, and with ep: 1 nothing does"});
  CHECK(problems(eight, "dispatch: per_node, compression: {rate: 0.2}") ==
        Problems{"12:40: compression sends means of copies, and with this dispatch tokens travel once to each node"});
  CHECK(problems(good_study, "compression: {rate: 0.2}") == Problems{"12:6: llama-7b has no experts"});
}

TEST_CASE("lengths come from exactly one source", "[study]") {
  CHECK(problems_with("{preset: github, edges: upper}", "{preset: github, file: x.csv}") ==
        Problems{"6:12: lengths come from one source: 'preset', 'file', 'lognormal', 'lognormal_pareto' or 'fixed'"});
  CHECK(StudyFile(changed(good_study, "{preset: github, edges: upper}", "{lognormal: {mu: 8, sigma: 1.2, max: 64Ki}}"))
            .problems()
            .empty());
  CHECK(problems_with("{preset: github, edges: upper}", "{lognormal: {mu: 8, sigma: -1}}").at(0).starts_with("6:24: "));
}

TEST_CASE("media lengthen the text of a study's samples, and all that is wrong of them is told at once", "[study]") {
  // An image of 448 x 448 pixels is 16 x 16 tokens of 28 x 28, a clip of 4 s is 100.
  const std::string media =
      "media: {images: {encoder: qwen2.5-vl, pixels: {from: 196Ki, to: 196Ki}}, "
      "audio: {encoder: qwen2-audio, duration: {from: 4 s, to: 4 s}}}";
  const Study study =
      StudyFile(changed(good_study, "{preset: github, edges: upper}", "{fixed: 50, " + media + "}")).load();
  CHECK(study.points.at(0).spec.lengths.distribution->quantile(0.5) == 50 + 256 + 100);

  const Problems problems = problems_with(
      "{preset: github, edges: upper}",
      "{fixed: 50, media: {images: {encoder: clip, pixels: {from: 4Mi, to: 1Mi}}, video: {encoder: qwen2.5-vl}}}");
  REQUIRE(problems.size() == 4);
  CHECK_THAT(problems[0], Catch::Contains("there is no encoder of images 'clip'"));
  CHECK_THAT(problems[1], Catch::Contains("pixels ends below where it begins"));
  CHECK_THAT(problems[2] + problems[3], Catch::Contains("pixels") && Catch::Contains("duration"));
  CHECK_THAT(problems_with("{preset: github, edges: upper}", "{preset: github, media: {}}").at(0),
             Catch::StartsWith("6:36: there are no media"));
  const StudyFile documents(changed(good_study, "{preset: github, edges: upper}", "{file: a.txt, " + media + "}"));
  documents.add("a.txt", "100\n200\n");
  CHECK_THAT(documents.problems().at(0), Catch::Contains("media are added to lengths that are drawn"));
}

TEST_CASE("the keys of a temporal graph and those of columns exclude each other", "[study]") {
  const auto graph = [](const std::string& keys) {
    return StudyFile(changed(good_study, "{preset: github, edges: upper}", "{file: graph.csv, " + keys + "}"));
  };
  const StudyFile good = graph("format: edges, neighbours: 1, interactions: 2");
  good.add("graph.csv", "1,2,0\n1,2,1\n1,2,2\n");
  const auto trace = good.load().points.at(0).spec.lengths.trace;
  CHECK(trace->tokens == std::vector<std::int64_t>{1, 1, 1, 2, 2, 2, 2, 2, 2});
  CHECK(trace->steps == std::vector<std::int64_t>{0, 0, 0, 0, 0, 0, 1, 1, 1});

  const StudyFile bad = graph("format: edges, column: a, step_column: b");
  bad.add("graph.csv", "1,2,0\n");
  CHECK(bad.problems().size() == 2);
  const StudyFile lines = graph("format: lines, neighbours: 1, interactions: 2");
  lines.add("graph.csv", "12\n");
  CHECK(lines.problems().size() == 2);
}

TEST_CASE("an empty file and a list are no studies", "[study]") {
  CHECK(StudyFile("").problems() == Problems{"0:0: the study must be a map, found nothing"});
  CHECK(StudyFile("[1, 2]").problems() == Problems{"1:1: the study must be a map, found a list"});
}

TEST_CASE("paths are relative to the file in which they stand", "[paths]") {
  CHECK(path_of(Value::scalar("x.csv", {"configs/studies/a.yaml", 1, 1})) == "configs/studies/x.csv");
  CHECK(path_of(Value::scalar("/x.csv", {"configs/studies/a.yaml", 1, 1})) == "/x.csv");
  CHECK(path_of(Value::scalar("x.csv", {"--set", 1, 1})) == "x.csv");
}

TEST_CASE("a resolved study has absolute paths, in its sweep too", "[paths]") {
  Diagnostics diagnostics;
  Value study = parse_document(
      "/a/s.yaml", "profile: p.yaml\nsweep: {data.lengths.file: [x.csv], profile: [name, q/p]}", diagnostics);
  make_paths_absolute(study);
  CHECK(line_of(study) == "{profile: /a/p.yaml, sweep: {data.lengths.file: [/a/x.csv], profile: [name, /a/q/p]}}");
}

TEST_CASE("the options of a plan are told beside the problems of the rest", "[study]") {
  const std::string text = changed(changed(good_study, "gpus: 32", "gpus: 33"), "[static, hdp-naive]",
                                   "[{static: {cp: 4}}, {hdp-naive: {ofload: auto}}, {}]");
  CHECK(StudyFile(text).problems() == Problems{"2:42: 33 gpus are not a whole number of nodes of 8",
                                               "11:41: hdp-naive has no key 'ofload'",
                                               "11:57: a plan is the name of a policy, or one name with its options"});
}

TEST_CASE("planners count the FLOPs of a sequence as slime's own code does", "[study]") {
  // The workloads of s tokens that THUDM/slime 624b824a, build_dp_schedule, gives for these models: linear s + square
  // s^2.
  struct Counted {
    const char* model;
    std::int64_t linear;
    std::int64_t square;
  };
  for (const auto& [model, linear, square] :
       {Counted{"llama3-8b", 15'009'316'864, 262'144}, Counted{"qwen3-30b-a3b", 5'655'494'656, 393'216}}) {
    CAPTURE(model);
    const Study study = StudyFile(good_study).load({std::string("model.preset=") + model, "mesh.capacity=16Ki"});
    const StudyPoint& point = study.points.at(0);
    const CountedFlops counted = planning_context(point.spec, point.make_world()->job()).counted_flops;
    CHECK(counted.linear == linear);
    CHECK(counted.square == square);
  }
}

}  // namespace
}  // namespace hdpsim
