#include "sim/study/background.h"

#include "sim/run/step.h"
#include "tests/support/catch.h"
#include "tests/support/study_file.h"

namespace hdpsim {
namespace {

using test::changed;
using test::good_study;
using test::Problems;
using test::StudyFile;

// Nodes 0 and 1 of the good study's four train it; what runs beside it is lines of the list `background`.
std::string with_background(const std::string& lines) {
  return changed(good_study, "{tp: 2}", "{tp: 2, nodes: 0-1}") + "background:\n" + lines;
}

Problems problems_of(const std::string& lines) {
  return StudyFile(with_background(lines)).problems();
}

TEST_CASE("a background job has the study's model, data and mesh but for its own keys, nodes and seed", "[study]") {
  const Study study = StudyFile(with_background("  - {name: a, nodes: 2, plan: static}\n"
                                                "  - name: b\n"
                                                "    nodes: [3]\n"
                                                "    plan: hdp-naive\n"
                                                "    model: {preset: llama-13b}\n"
                                                "    data: {context: 16Ki}\n"
                                                "    mesh: {tp: 4}\n"))
                          .load({"data.context=32Ki"});
  const PointSpec& main = study.points[0].spec;
  CHECK(main.mesh.hdp == 2 * 8 / 2);
  REQUIRE(main.background.size() == 2);
  const PointSpec& a = *main.background[0].job;
  CHECK(a.model.name == "llama-7b");
  CHECK(a.mesh.hdp == 8 / 2);
  CHECK(a.batch.context == main.batch.context);
  CHECK(a.batch.seed == main.batch.seed + 1);
  const PointSpec& b = *main.background[1].job;
  CHECK(b.model.name == "llama-13b");
  CHECK(b.mesh.tp == 4);
  CHECK(b.mesh.hdp == 8 / 4);
  CHECK(b.batch.context == 16384);
  CHECK(b.batch.tokens_per_step == main.batch.tokens_per_step);
  CHECK(b.batch.seed == main.batch.seed + 2);
  CHECK(study.run_info(0, 0).background[1].what == "llama-13b with hdp-naive");
  CHECK(main.setting().find("on 16 of 32 x A100-80GB") != std::string::npos);
}

TEST_CASE("a job has the whole cluster, or the nodes that it names", "[study]") {
  const auto ranks_with = [](const std::string& nodes) {
    return StudyFile(changed(good_study, "{tp: 2}", "{tp: 2, nodes: " + nodes + "}")).load().points[0].spec.mesh.hdp;
  };
  CHECK(StudyFile(good_study).load().points[0].spec.mesh.hdp == 16);
  CHECK(ranks_with("1-2") == 8);
  CHECK(ranks_with("every 2 from 1") == 8);
  CHECK(ranks_with("[0, 2-3]") == 12);
}

TEST_CASE("nodes that do not exist, stand twice or are none are told where they stand", "[study]") {
  const auto problems_with = [](const std::string& nodes) {
    return StudyFile(changed(good_study, "{tp: 2}", "{tp: 2, nodes: " + nodes + "}")).problems();
  };
  CHECK(problems_with("4") == Problems{"10:22: there is no node 4"});
  CHECK(problems_with("2-9") == Problems{"10:22: there is no node 9"});
  CHECK(problems_with("some") == Problems{"10:22: 'some' names no nodes"});
  CHECK(problems_with("[0-2, 1]") == Problems{"10:28: node 1 is stated a second time here"});
  CHECK(problems_with("[]") == Problems{"10:22: a job needs at least one node"});
  CHECK(problems_with("0, hdp: 16") == Problems{"10:30: tp x hdp x pp = 2 x 16 x 1 = 32, but its nodes have 8 GPUs"});
}

TEST_CASE("two jobs on one node are told at the later one", "[study]") {
  CHECK(problems_of("  - {name: a, nodes: 1-2, plan: static}\n  - {name: b, nodes: 2-3, plan: static}\n") ==
        Problems{"13:22: node 1 is taken by the main job already", "14:22: node 2 is taken by 'a' already"});
  CHECK(problems_of("  - {name: a, nodes: 2, traffic: {pattern: ring}}\n  - {name: a, nodes: 3, plan: static}\n") ==
        Problems{"14:12: there is another 'a'"});
  const StudyFile everywhere(with_background("  - {name: a, nodes: 2, plan: static}\n"));
  CHECK(test::problems_of([&] { (void)everywhere.load({"mesh.nodes=~"}); }) ==
        Problems{"13:22: node 2 is taken by the main job already"});
}

TEST_CASE("nodes that two jobs have are told beside everything else", "[study]") {
  CHECK(problems_of("  - {name: a, nodes: 1, plan: statik}\n  - {name: b, nodes: 9, plan: static}\n") ==
        Problems{"13:22: node 1 is taken by the main job already", "13:31: there is no policy 'statik'",
                 "14:22: there is no node 9"});
}

TEST_CASE("what a background entry says wrong is told all at once", "[study]") {
  CHECK(problems_of("  - {name: a, nodes: 9, plan: statik, model: {preset: llama-8b}, speed: 2}\n"
                    "  - {nodes: 3, traffic: {pattern: all_to_all}, plan: static}\n"
                    "  - {name: c, nodes: 2, data: {steps: 3}, mesh: {nodes: 3, hdp: 3}, plan: static}\n") ==
        Problems{"13:22: there is no node 9", "13:31: there is no policy 'statik'",
                 "13:55: there is no model preset 'llama-8b'", "13:66: the background job has no key 'speed'",
                 "14:5: the background job needs 'name'", "14:35: there is no endless pattern 'all_to_all'",
                 "14:54: traffic has no 'plan'", "15:39: a background job has no 'steps'",
                 "15:57: the nodes of a background job are stated next to its mesh",
                 "15:65: tp x hdp x pp = 2 x 3 x 1 = 6, but its nodes have 8 GPUs"});
  CHECK(problems_of("  {name: a}\n") == Problems{"13:3: the background must be a list of at most 60 jobs"});
}

TEST_CASE("a plan that a background job's ranks cannot carry out is told at its plan", "[study]") {
  CHECK(problems_of("  - {name: a, nodes: 2, plan: {static: {cp: 8}}}\n").size() == 1);
}

TEST_CASE("the closed form simulates the main job alone", "[study]") {
  const std::string lines = "  - {name: a, nodes: 2, plan: static}\n";
  CHECK(StudyFile(with_background(lines) + "grain: closed_form\n").problems() ==
        Problems{"14:8: the closed form simulates the main job alone"});
}

TEST_CASE("paths lead into the background by index, in sweeps and overrides", "[study]") {
  const StudyFile file(with_background("  - {name: a, nodes: 2-3, plan: static, mesh: {tp: 2}}\n"));
  const Study swept = file.load({"sweep.background.0.mesh.tp=[2, 4, 8]", "background.0.data.context=8Ki"});
  REQUIRE(swept.points.size() == 3);
  CHECK(swept.points[2].spec.background[0].job->mesh.tp == 8);
  CHECK(swept.points[2].spec.background[0].job->batch.context == 8192);
  CHECK(swept.points[0].world != swept.points[1].world);
  CHECK(file.problems({"background.0.mesh.tp=3"}) ==
        Problems{"1:22: 'tp' is 3, which does not divide the 32 heads of llama-7b",
                 "1:22: tp x hdp x pp = 3 x 5 x 1 = 15, but its nodes have 16 GPUs"});
}

TEST_CASE("what an override adds to a background job stands where it was written", "[study]") {
  const StudyFile file(with_background("  - {name: a, nodes: 2-3, plan: static}\n"));
  CHECK(file.problems({"background.0.mesh.hdp=3"}) ==
        Problems{"1:23: tp x hdp x pp = 2 x 3 x 1 = 6, but its nodes have 16 GPUs"});
  CHECK(file.problems({"background.0.data.contxt=3"}) == Problems{"1:26: the data has no key 'contxt'"});
  CHECK(file.problems({"background.2.plan=static"}) ==
        Problems{"1:19: 'background.2.plan' does not lead anywhere: 'background' has no entry '2'"});
}

TEST_CASE("runs beside other jobs are other runs, also when only a file that those name has changed", "[study]") {
  const std::string lines = "  - {name: a, nodes: 2-3, plan: static, data: {lengths: {file: theirs.txt}}}\n";
  const StudyFile file(with_background(lines));
  file.add("theirs.txt", "100\n200\n");
  const std::string first = file.load().points[0].identity;
  CHECK(file.load({"background.0.plan=hdp-naive"}).points[0].identity != first);
  CHECK(file.load({"background=[]"}).points[0].identity !=
        file.load({"background=[{name: t, nodes: 2, traffic: {pattern: ring}}]"}).points[0].identity);
  file.add("theirs.txt", "100\n201\n");
  CHECK(file.load().points[0].identity != first);
}

TEST_CASE("an empty background is none", "[study]") {
  const StudyFile file(good_study);
  CHECK(file.load({"background=[]"}).points[0].identity == file.load().points[0].identity);
  const Study study = file.load({"background=[]"});
  CHECK(study.points[0].neighbours.empty());
}

TEST_CASE("the resolved study with a background is the same study", "[study]") {
  const StudyFile file(
      with_background("  - {name: a, nodes: every 2 from 2, plan: static, mesh: {tp: 4, capacity: 32Ki}}\n"));
  const Study study = file.load({"data.seed=5"});
  file.add("study.yaml", to_yaml(study.resolved));
  const Study again = file.load();
  CHECK(again.points[0].identity == study.points[0].identity);
  CHECK(again.points[0].spec.background[0].job->batch.seed == 6);
}

TEST_CASE("jobs that share no link do not slow each other", "[runner]") {
  const StudyFile file(
      with_background("  - {name: a, nodes: 2-3, plan: static}\n"));  // the cluster is not oversubscribed
  for (const char* grain : {"grain=fluid", "grain=exact"}) {
    const Study beside = file.load({grain, "data.context=32Ki"});
    const Study alone = file.load({grain, "data.context=32Ki", "background=[]"});
    for (std::size_t plan = 0; plan < 2; ++plan) {
      const SimulatedStep a = simulate_step(beside.points[0], plan, 0, *beside.points[0].make_world());
      const SimulatedStep b = simulate_step(alone.points[0], plan, 0, *alone.points[0].make_world());
      CHECK(a.result.time == b.result.time);
      CHECK(a.result.mean[Activity::grad_sync] == b.result.mean[Activity::grad_sync]);
      CHECK((a.links.main == b.links.main));
      CHECK(b.links.others.empty());
    }
  }
}

TEST_CASE("a bad NIC in another job's node slows nobody else, one in its own does", "[runner]") {
  const StudyFile file(changed(good_study, "{tp: 2}", "{tp: 2, nodes: [0, 2]}"));
  const auto grad_sync_with = [&](const std::string& links) {
    const Study study = file.load({"cluster.links={" + links + "}"});
    return simulate_step(study.points[0], 0, 0, *study.points[0].make_world()).result.mean[Activity::grad_sync];
  };
  const Duration sound = grad_sync_with("");
  CHECK(grad_sync_with("node 1 nic 3: 0.1") == sound);
  CHECK(grad_sync_with("node 2 nic 3: 0.1") > sound);
}

}  // namespace
}  // namespace hdpsim
