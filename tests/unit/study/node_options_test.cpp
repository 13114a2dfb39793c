#include "sim/study/node_options.h"

#include <algorithm>
#include <set>

#include "tests/support/study_file.h"

namespace hdpsim {
namespace {

using test::StudyFile;

// Three pods of 4 nodes, and a job of 4 nodes: 2 pipelines of 2 stages of a node each.
constexpr char on_three_pods[] = R"(name: choice
cluster: {preset: a100-rail-3tier, gpus: 96, tiers: {tor: {fan_in: 4}}}
model: {preset: llama-7b}
profile: bytescale-implied
data: {lengths: {fixed: 4Ki}, context: 4Ki, tokens_per_step: 64Ki, steps: 1}
mesh:
  tp: 8
  pp: 2
  hdp: 2
  nodes: {free: [0-2, 4, 9]}
plans: [static]
)";

std::vector<std::size_t> nodes_in_order(const PointSpec& point) {
  std::vector<std::size_t> nodes;
  for (std::int64_t i = 0; i < point.nodes.count(point.cluster); ++i) {
    nodes.push_back(point.nodes.node(static_cast<std::size_t>(i)).index());
  }
  return nodes;
}

PointSpec placed_point(const std::vector<std::string>& overrides) {
  return StudyFile(on_three_pods).load(overrides).points.front().spec;
}

std::vector<std::size_t> chosen_nodes(const std::vector<std::string>& overrides) {
  return nodes_in_order(placed_point(overrides));
}

std::set<std::size_t> free_nodes(const std::string& nodes) {
  std::set<std::size_t> free;
  const PointSpec point = placed_point({"mesh.nodes=" + nodes});
  for (const NodeId node : point.choice->free) free.insert(node.index());
  return free;
}

using Nodes = std::vector<std::size_t>;

TEST_CASE("of more free nodes than the mesh needs, a policy chooses", "[node_options]") {
  CHECK(chosen_nodes({}) == Nodes{0, 1, 2, 4});
  CHECK(chosen_nodes({"mesh.nodes.choose=best_fit"}) == Nodes{4, 9, 0, 1});  // pods of 1, 1 and 3 free nodes
  CHECK(chosen_nodes({"mesh.nodes.choose=gpu_packing"}) == Nodes{0, 1, 2, 4});
  // Two whole pipelines of two nodes are not in pods of 3, 1 and 1: one is in two pods. Stage by stage: 0 4, 1 2.
  const PointSpec arnold = placed_point({"mesh.nodes.choose=arnold"});
  REQUIRE(placed_groups(arnold));
  CHECK(placed_groups(arnold)->spread.pipeline_max == 2);
  CHECK(placed_groups(arnold)->spread.pods == 2);
  CHECK(placed_groups(arnold)->gap == 0);
}

TEST_CASE("with enough free nodes arnold keeps pipelines in pods, whatever the order of the free ones",
          "[node_options]") {
  const PointSpec point = placed_point({"mesh.nodes={free_per_pod: [2, 1, 3], choose: arnold}"});
  CHECK(nodes_in_order(point) == Nodes{0, 8, 1, 9});  // stage 0 on nodes 0 and 8, stage 1 on 1 and 9
  const auto placed = placed_groups(point);
  REQUIRE(placed);
  CHECK(placed->spread.pipeline_max == 0);
  CHECK(placed->spread.data_parallel_max == 2);
  CHECK(placed->score == 0);  // alpha is 0 for a dense model
  CHECK_THAT(point.setting(), Catch::Contains("4 of 6 free nodes by arnold (alpha 0) in 2 pods, data parallelism over "
                                              "up to 2 (mean 2.00), pipelines in one each"));
}

TEST_CASE("alpha is the study's, or that of the paper's job of the same kind", "[node_options]") {
  CHECK(placed_point({"mesh.nodes.choose=arnold"}).choice->alpha == 0);
  CHECK(placed_point({"model.preset=mixtral-8x7b"}).choice->alpha == 0.3);
  CHECK(placed_point({"mesh.nodes.alpha=0.7"}).choice->alpha == 0.7);
}

TEST_CASE("busy nodes are so many, in runs of neighbours, and the same for the same seed", "[node_options]") {
  const std::set<std::size_t> free = free_nodes("{busy: 0.5, busy_run: 2, seed: 3}");
  CHECK(free.size() == 12 / 2);
  for (const std::size_t node : free) CHECK(free.contains(node ^ 1));  // runs begin at even nodes
  CHECK(free_nodes("{busy: 0.5, busy_run: 2, seed: 3}") == free);
  std::set<std::set<std::size_t>> of_seeds;
  for (int seed = 1; seed <= 8; ++seed) of_seeds.insert(free_nodes(fmt::format("{{busy: 0.5, seed: {}}}", seed)));
  CHECK(of_seeds.size() > 4);
}

TEST_CASE("nodes of background jobs are not free", "[node_options]") {
  CHECK(chosen_nodes({"mesh.nodes={}", "background=[{name: other, nodes: [0-2, 5], plan: static}]"}) ==
        Nodes{3, 4, 6, 7});
}

TEST_CASE("a job that takes all free nodes needs no hdp, and takes their order from the choice", "[node_options]") {
  const PointSpec point = placed_point({"mesh.hdp=null", "mesh.nodes={free: [9, 4-6], choose: best_fit}"});
  CHECK(point.mesh.hdp == 2);
  CHECK(nodes_in_order(point) == Nodes{9, 4, 5, 6});
}

TEST_CASE("stated nodes have a spread, too; the whole cluster has none", "[node_options]") {
  const auto placed = placed_groups(placed_point({"mesh.nodes=[0, 1, 4, 5]"}));
  REQUIRE(placed);
  CHECK(placed->spread.pods == 2);
  CHECK(placed->spread.pipeline_max == 2);
  CHECK(!placed_groups(placed_point({"mesh.nodes=null", "mesh.hdp=6"})));
}

TEST_CASE("what cannot be placed says which pods have how many nodes, and how many are missing", "[node_options]") {
  const StudyFile file(on_three_pods);
  try {
    (void)file.load({"mesh.hdp=4"});
    FAIL("a mesh of 8 nodes on 5");
  } catch (const InputError& error) {
    const std::string text = error.what();
    CHECK_THAT(text, Catch::Contains("the mesh needs 8 nodes, and 5 are free: 3 are missing"));
    CHECK_THAT(text, Catch::Contains("tor 0 has 3 of 4, tor 1 has 1 of 4, tor 2 has 1 of 4"));
  }
  CHECK(file.problems({"mesh.nodes={free_per_pod: [2, 5, 3]}"}) ==
        std::vector<std::string>{"1:31: tor 1 has 4 nodes, 1 too few for 5 free ones"});
  CHECK(file.problems({"mesh.nodes={free_per_pod: [2, 5, 3], pod: toor}"}) ==
        std::vector<std::string>{"1:43: the cluster has no tier 'toor'"});
}

TEST_CASE("all problems of a choice are reported at once, where they are", "[node_options]") {
  const StudyFile file(on_three_pods);
  const auto problems =
      file.problems({"mesh.nodes={free: 0-3, busy: 1.5, choose: arnald, alpha: -1, pod: spin, busy_run: 0, sed: 1}"});
  std::vector<std::string> texts;
  for (const std::string& problem : problems) texts.push_back(problem.substr(problem.find(' ') + 1));
  const auto reports = [&](std::string_view text) {
    return std::any_of(texts.begin(), texts.end(),
                       [&](const std::string& each) { return each.find(text) != std::string::npos; });
  };
  CAPTURE(texts);
  CHECK(reports("'busy' says which nodes are free, and so does a key before it"));
  CHECK(reports("'busy' is 1.5"));
  CHECK(reports("arnald"));
  CHECK(reports("'alpha' is -1"));
  CHECK(reports("the cluster has no tier 'spin'"));
  CHECK(reports("'busy_run' is 0"));
  CHECK(reports("sed"));
  for (const std::string& problem : problems) CHECK(problem.starts_with("1:"));
}

TEST_CASE("a node with parts of two stages and ranks cannot be divided by arnold", "[node_options]") {
  // 3 ranks of 4 GPUs are a node and a half, two stages three nodes.
  const std::vector<std::string> mesh = {"mesh.tp=4", "mesh.hdp=3"};
  std::vector<std::string> by_arnold = mesh;
  by_arnold.emplace_back("mesh.nodes.choose=arnold");
  const auto problems = StudyFile(on_three_pods).problems(by_arnold);
  REQUIRE(problems.size() == 1);
  CHECK_THAT(problems.front(), Catch::Contains("parts of several stages and ranks"));
  CHECK(chosen_nodes(mesh) == Nodes{0, 1, 2});
}

}  // namespace
}  // namespace hdpsim
