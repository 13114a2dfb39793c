#include "sim/tasks/task_file.h"

#include "tests/unit/tasks/task_text.h"

namespace hdpsim {
namespace {

using test::changed;
using test::good_tasks;
using test::Problems;
using test::TasksFile;

Problems problems_with(const std::string& from, const std::string& to) {
  return TasksFile(changed(good_tasks, from, to)).problems();
}

TEST_CASE("a file of tasks is read with its graphs, and modules that tasks share", "[tasks]") {
  const TaskFile file = TasksFile().load();
  REQUIRE(file.cases.size() == 1);
  const TaskCase& read = file.cases[0];
  CHECK(read.cluster().devices == 16);
  REQUIRE(read.modules.size() == 3);
  CHECK(read.modules[0].model().layers == 4);
  CHECK(read.modules[0].model().ffn_hidden == 4 * 512);
  CHECK_FALSE(read.modules[0].has_head);
  CHECK_FALSE(read.modules[0].is_causal);
  CHECK(read.modules[2].has_head);
  CHECK(read.modules[2].is_causal);
  CHECK(read.modules[2].tp == 2);
  REQUIRE(read.tasks.size() == 2);
  CHECK(read.tasks[0].nodes[1].after == std::vector<std::size_t>{0});
  CHECK(read.tasks[0].nodes[0].batch == 16);
  CHECK(read.tasks[1].nodes[0].batch == 8);
  CHECK(read.tasks[0].nodes[0].module == read.tasks[1].nodes[0].module);
}

TEST_CASE("tasks that are not trained leave their modules out", "[tasks]") {
  const TaskFile file = TasksFile().load({"train=[pairs]"});
  REQUIRE(file.cases[0].tasks.size() == 1);
  REQUIRE(file.cases[0].modules.size() == 2);
  CHECK(file.cases[0].modules[1].name == "text");
}

TEST_CASE("a case is the file with values set, and published figures stand beside it", "[tasks]") {
  const TaskFile file = TasksFile(std::string(good_tasks) +
                                  "cases: [{set: {cluster.gpus: 8, batch: 4}, published: {spindle: 1.5}}, {}]\n")
                            .load();
  REQUIRE(file.cases.size() == 2);
  CHECK(file.cases[0].label == "cluster.gpus=8, batch=4");
  CHECK(file.cases[0].cluster().devices == 8);
  CHECK(file.cases[0].tasks[0].nodes[0].batch == 4);
  CHECK(file.cases[0].published == std::vector<std::pair<std::string, double>>{{"spindle", 1.5}});
  CHECK(file.cases[1].cluster().devices == 16);
}

TEST_CASE("what a file of tasks says wrongly is told with its place, all at once", "[tasks]") {
  const Problems problems = TasksFile(R"(name: bad
cluster: {preset: dgx-a100-superpod, gpus: 16}
modules:
  vision: {layers: 4, width: 512, head: 8}
tasks:
  caption: {graph: {vision: {tokens: 0}, lm: {tokens: 128}}}
  pairs: {batch: 8, graph: {a: {module: vision, tokens: 2, after: [b]}, b: {module: vison, tokens: 2, after: [a]}}}
train: [nothing]
cases: [{set: 3, published: {spindel: 2}}]
)")
                                .problems();
  const char* begins[] = {"4:3: the module 'vision' has no size",
                          "4:35: ",
                          "6:3: the task 'caption' has no batch",
                          "7:29: 'a' waits for itself",
                          "7:85: ",
                          "8:9: ",
                          "9:15: ",
                          "9:30: "};
  REQUIRE(problems.size() == std::size(begins));
  for (std::size_t i = 0; i < problems.size(); ++i) CHECK_THAT(problems[i], Catch::StartsWith(begins[i]));
}

TEST_CASE("a module is told what it lacks, at its place", "[tasks]") {
  CHECK(problems_with("{layers: 4, width: 512, heads: 8}", "{layers: 4, width: 512}") ==
        Problems{"6:3: the module 'vision' has no size"});
  CHECK(problems_with("heads: 8}", "heads: 7}") == Problems{"6:42: 7 heads do not divide the width 512"});
  CHECK(problems_with("{layers: 4, width: 512, heads: 8}", "{model: {preset: mixtral-8x7b}}") ==
        Problems{"6:3: the layers of 'vision' differ, or have experts"});
  CHECK(problems_with("{layers: 4, width: 512, heads: 8}", "{model: {preset: llama-7b}, layers: 3}") ==
        Problems{"6:3: the module 'vision' has both a model and sizes"});
  CHECK(problems_with("heads: 8}", "heads: 8, tp: 3}") == Problems{"6:49: tp is 3, which does not divide the 8 heads"});
  CHECK(problems_with("batch: 16", "training: {optimizer: muon}\nbatch: 16") ==
        Problems{"4:11: tasks cannot be trained with optimizer: muon yet"});  // told once, though modules are three
  const Problems unknown = problems_with("gpus: 16", "gpu: 16");
  REQUIRE(unknown.size() == 1);  // though three modules are read with the cluster
  CHECK_THAT(unknown[0], Catch::Contains("gpu"));
}

}  // namespace
}  // namespace hdpsim
