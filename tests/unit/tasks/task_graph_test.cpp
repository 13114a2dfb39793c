#include "sim/tasks/task_graph.h"

#include "tests/support/catch.h"

namespace hdpsim {
namespace {

// Modules of 3 and 2 layers, and one of 4 with a head.
const std::vector<ModuleSize> modules = {{3, false}, {2, false}, {4, true}};

TEST_CASE("layers of a node are one run, and its head another behind it", "[tasks]") {
  const std::vector<MetaOp> runs = meta_ops({{"lm", {{"lm", 2, 8, 512, {}}}}}, modules);
  REQUIRE(runs.size() == 2);
  CHECK(runs[0].operators == 4);
  CHECK(runs[0].level == 0);
  CHECK(runs[1].kind == OperatorKind::head);
  CHECK(runs[1].operators == 1);
  CHECK(runs[1].after == std::vector<std::size_t>{0});
  CHECK(runs[1].level == 1);
}

TEST_CASE("levels are the depth behind all that is read, over all tasks", "[tasks]") {
  // In the first task the LM reads an encoder and what reads another encoder; the second has one of these alone.
  const std::vector<TaskGraph> tasks = {
      {"deep", {{"lm", 2, 8, 512, {1, 2}}, {"a", 0, 8, 10, {}}, {"b", 1, 8, 20, {1}}}},
      {"flat", {{"a", 0, 4, 10, {}}}}};
  const std::vector<MetaOp> runs = meta_ops(tasks, modules);
  REQUIRE(runs.size() == 5);
  const std::vector<std::vector<std::size_t>> levels = levels_of(runs);
  REQUIRE(levels.size() == 4);
  CHECK(levels[0].size() == 2);  // a of both
  CHECK(runs[levels[0][1]].task == 1);
  CHECK(levels[1].size() == 1);
  CHECK(runs[levels[1][0]].node == 2);
  CHECK(runs[levels[2][0]].operators == 4);
  CHECK(runs[levels[2][0]].after.size() == 2);
  for (const MetaOp& run : runs) {
    for (const std::size_t input : run.after) CHECK(runs[input].level < run.level);
  }
}

TEST_CASE("a circle among nodes is found", "[tasks]") {
  CHECK(node_in_circle({{"a", 0, 1, 1, {}}, {"b", 0, 1, 1, {0}}}) == 2);
  CHECK(node_in_circle({{"a", 0, 1, 1, {}}, {"b", 0, 1, 1, {2}}, {"c", 0, 1, 1, {1}}}) == 1);
  CHECK(node_in_circle({{"a", 0, 1, 1, {0}}}) == 0);
}

}  // namespace
}  // namespace hdpsim
