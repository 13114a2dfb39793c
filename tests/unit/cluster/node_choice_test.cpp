#include "sim/cluster/node_choice.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>

#include "sim/base/random.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

/// Nodes of 8 GPUs in pods of equal size.
ClusterSpec cluster_of(std::int64_t pods, std::int64_t nodes_each) {
  ClusterSpec cluster;
  cluster.devices_per_node = 8;
  cluster.devices = 8 * pods * nodes_each;
  cluster.tiers = {{.name = "spine", .fan_in = nodes_each}, {.name = "core", .fan_in = pods}};
  return cluster;
}

/// The first nodes of each pod.
NodeChoice free_in_pods(const ClusterSpec& cluster, const std::vector<std::int64_t>& counts) {
  NodeChoice choice;
  choice.pod_tier = 0;
  const Pods pods(cluster, 0);
  for (std::size_t pod = 0; pod < counts.size(); ++pod) {
    for (std::int64_t i = 0; i < counts[pod]; ++i) {
      choice.free.emplace_back(pods.first(pod).index() + static_cast<std::size_t>(i));
    }
  }
  return choice;
}

/// The pods of the places of a job, in the order of its ranks.
std::vector<std::size_t> pods_by(NodePolicy policy, const std::vector<std::int64_t>& free, const NodeMatrix& matrix) {
  const ClusterSpec cluster = cluster_of(std::ssize(free), 8);
  NodeChoice choice = free_in_pods(cluster, free);
  choice.policy = policy;
  const NodeList nodes = choose_nodes(choice, matrix, cluster).nodes;
  std::vector<std::size_t> pods;
  for (std::int64_t i = 0; i < matrix.nodes(); ++i) {
    pods.push_back(Pods(cluster, 0).of(nodes.node(static_cast<std::size_t>(i))));
  }
  return pods;
}

using List = std::vector<std::size_t>;
constexpr auto every_policy = std::to_array({NodePolicy::in_order, NodePolicy::best_fit, NodePolicy::random_fit,
                                             NodePolicy::gpu_packing, NodePolicy::topology_aware, NodePolicy::arnold});

}  // namespace

TEST_CASE("a pod is a unit of the highest tier of which there are several", "[pods]") {
  ClusterSpec cluster = cluster_of(3, 4);
  cluster.devices -= 8;
  REQUIRE(usual_pod_tier(cluster) == std::size_t{0});
  const Pods pods(cluster, 0);
  CHECK(pods.count() == 3);
  CHECK(pods.nodes(0) == 4);
  CHECK(pods.nodes(2) == 3);  // what the cluster has left
  CHECK(pods.of(NodeId(7)) == 1);
  CHECK(pods.name(2) == "spine 2");
  CHECK(!usual_pod_tier(cluster_of(1, 4)));
}

TEST_CASE("each baseline takes the nodes of pods in its own order", "[node_choice]") {
  const NodeMatrix six{.rows = 6, .columns = 1};
  CHECK(pods_by(NodePolicy::in_order, {2, 5, 3}, six) == List{0, 0, 1, 1, 1, 1});
  CHECK(pods_by(NodePolicy::best_fit, {2, 5, 3}, six) == List{0, 0, 2, 2, 2, 1});     // 2, 3, and 1 of 5
  CHECK(pods_by(NodePolicy::gpu_packing, {2, 5, 3}, six) == List{1, 1, 1, 1, 1, 0});  // 1 node is left: 2 suffice
  CHECK(pods_by(NodePolicy::gpu_packing, {8, 6, 7}, six) == List{1, 1, 1, 1, 1, 1});  // the smallest that has 6
}

TEST_CASE("random fit takes from every pod, and the same for the same seed", "[node_choice]") {
  const NodeMatrix many{.rows = 20, .columns = 1};
  const List drawn = pods_by(NodePolicy::random_fit, {8, 8, 8, 8}, many);
  CHECK(std::set<std::size_t>(drawn.begin(), drawn.end()).size() == 4);
  CHECK(!std::is_sorted(drawn.begin(), drawn.end()));
  CHECK(pods_by(NodePolicy::random_fit, {8, 8, 8, 8}, many) == drawn);
}

TEST_CASE("recursive bipartition takes the smaller half that has room, and else cuts between data-parallel groups",
          "[node_choice]") {
  const NodeMatrix four{.rows = 4, .columns = 1};
  CHECK(pods_by(NodePolicy::topology_aware, {8, 3, 2}, four) == List{1, 1, 2, 2});  // 3 + 2 are enough: 2 of each
  // Two stages of 4 nodes: the halves have 6 and 5, and each gets a whole stage, not 6 and 2 nodes.
  CHECK(pods_by(NodePolicy::topology_aware, {6, 5}, {.rows = 4, .columns = 2}) == List{0, 0, 0, 0, 1, 1, 1, 1});
  // Where the halves have no room for that, the cut is as near as it can be: 7 + 1.
  CHECK(pods_by(NodePolicy::topology_aware, {7, 1}, {.rows = 4, .columns = 2}) == List{0, 0, 0, 0, 0, 0, 0, 1});
}

TEST_CASE("arnold with alpha 0 keeps every pipeline in a pod", "[node_choice]") {
  // Three pipelines of two nodes, columns one after the other in the order of ranks: 0, 1, 2, 0, 1, 2.
  CHECK(pods_by(NodePolicy::arnold, {3, 5}, {.rows = 3, .columns = 2}) == List{0, 1, 1, 0, 1, 1});
  CHECK(pods_by(NodePolicy::arnold, {3, 5}, {.rows = 3, .columns = 2, .by_rows = true}) == List{0, 0, 1, 1, 1, 1});
}

TEST_CASE("every policy takes free nodes, each once, and the ranks of a node stay together", "[node_choice]") {
  const ClusterSpec cluster = cluster_of(4, 8);
  const Mesh mesh{.hdp = 12, .tp = 4, .pp = 2};
  const auto matrix = node_matrix("strided", mesh, 8);
  REQUIRE(matrix);
  for (const NodePolicy policy : every_policy) {
    NodeChoice choice = free_in_pods(cluster, {5, 0, 3, 6});
    choice.policy = policy;
    const NodeList nodes = choose_nodes(choice, *matrix, cluster).nodes;
    Diagnostics diagnostics;
    const auto placement = make_placement("strided", mesh, cluster, diagnostics, {}, nodes);
    REQUIRE(placement != nullptr);
    std::map<NodeId, std::set<DeviceId>> used;
    for (std::int64_t slice = 0; slice < mesh.hdp * mesh.pp; ++slice) {
      const HdpRank rank(static_cast<std::size_t>(slice / mesh.pp));
      const NodeId node = cluster.node_of(placement->device(rank, slice % mesh.pp, 0));
      CHECK(std::find(choice.free.begin(), choice.free.end(), node) != choice.free.end());
      const HdpRank neighbour(rank.index() - rank.index() % 2);  // two ranks of 4 GPUs share a node
      CHECK(node == cluster.node_of(placement->device(neighbour, slice % mesh.pp, 0)));
      for (std::int64_t shard = 0; shard < mesh.tp; ++shard) {
        CHECK(used[node].insert(placement->device(rank, slice % mesh.pp, shard)).second);
      }
    }
    CHECK(used.size() == 12);
    for (const auto& [node, devices] : used) CHECK(devices.size() == 8);
  }
}

TEST_CASE("the matrix of a mesh: pipelines by rows, data-parallel groups by columns", "[node_choice]") {
  const auto strided = node_matrix("strided", {.hdp = 12, .tp = 4, .pp = 2}, 8);
  REQUIRE(strided);
  CHECK(strided->rows == 6);
  CHECK(strided->columns == 2);
  CHECK(strided->place(1, 1) == 6 + 1);
  const auto contiguous = node_matrix("contiguous", {.hdp = 12, .tp = 4, .pp = 4}, 8);
  REQUIRE(contiguous);
  CHECK(contiguous->rows == 12);
  CHECK(contiguous->columns == 2);  // a node has two stages of a rank
  CHECK(contiguous->place(1, 1) == 2 + 1);
  // 3 ranks of 4 GPUs are one node and a half.
  CHECK(!node_matrix("strided", {.hdp = 3, .tp = 4, .pp = 2}, 8));
}

TEST_CASE("spread: 0 for a group in one pod, k for one in k pods", "[pods]") {
  const ClusterSpec cluster = cluster_of(2, 2);
  const Mesh mesh{.hdp = 2, .tp = 8, .pp = 2};  // a node each
  Diagnostics diagnostics;
  const Pods pods(cluster, 0);
  const auto spread_on = [&](const std::vector<NodeId>& nodes) {
    const auto placement = make_placement("strided", mesh, cluster, diagnostics, {}, NodeList(nodes));
    return pod_spread(*placement, mesh, cluster, pods);
  };
  const std::array n{NodeId(0), NodeId(1), NodeId(2), NodeId(3)};
  const PodSpread by_stage = spread_on({n[0], n[1], n[2], n[3]});  // stage 0 in pod 0, stage 1 in pod 1
  CHECK(by_stage.pods == 2);
  CHECK(by_stage.data_parallel_max == 0);
  CHECK(by_stage.pipeline_max == 2);
  CHECK(by_stage.pipeline_mean == 2);
  CHECK(by_stage.score(0.25) == 0.75 * 2);
  const PodSpread by_rank = spread_on({n[0], n[2], n[1], n[3]});
  CHECK(by_rank.data_parallel_max == 2);
  CHECK(by_rank.pipeline_max == 0);
  CHECK(by_rank.score(0.25) == 0.25 * 2);
  const PodSpread mixed = spread_on({n[0], n[1], n[3], n[2]});
  CHECK(mixed.data_parallel_mean == 0);
}

namespace {

/// A setting of the paper's simulations (its table 1).
struct Setting {
  std::int64_t pods = 0;
  std::int64_t nodes_each = 0;
  NodeMatrix job;
};

/// alpha x pods + (1 - alpha) x the most pods of a row.
double cost_of(NodePolicy policy, NodeChoice choice, const Setting& setting, const ClusterSpec& cluster) {
  choice.policy = policy;
  const NodeList nodes = choose_nodes(choice, setting.job, cluster).nodes;
  const Pods pods(cluster, 0);
  std::set<std::size_t> all;
  std::size_t most = 0;
  for (std::int64_t row = 0; row < setting.job.rows; ++row) {
    std::set<std::size_t> of_row;
    for (std::int64_t column = 0; column < setting.job.columns; ++column) {
      of_row.insert(pods.of(nodes.node(setting.job.place(row, column))));
    }
    all.insert(of_row.begin(), of_row.end());
    most = std::max(most, of_row.size());
  }
  return choice.alpha * static_cast<double>(all.size()) + (1 - choice.alpha) * static_cast<double>(most);
}

struct Ratios {
  double sum = 0;
  double most = 0;
  double least = 1e9;
  int count = 0;
  [[nodiscard]] double mean() const { return sum / count; }
};

/// Of the best baseline to arnold. The free nodes are not published: of each pod so many are free as are drawn, none to
/// all with equal chances. Nodes are taken row by row, as the paper's units are.
Ratios best_baseline_over_arnold(const Setting& setting, double alpha) {
  const ClusterSpec cluster = cluster_of(setting.pods, setting.nodes_each);
  Ratios ratios;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    RandomStream random(seed, "free nodes");
    std::vector<std::int64_t> counts;
    for (std::int64_t pod = 0; pod < setting.pods; ++pod) {
      counts.push_back(static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(setting.nodes_each) + 1)));
    }
    NodeChoice choice = free_in_pods(cluster, counts);
    if (std::ssize(choice.free) < setting.job.nodes()) continue;
    choice.alpha = alpha;
    choice.seed = seed;
    double best = std::numeric_limits<double>::infinity();
    for (const NodePolicy policy :
         {NodePolicy::best_fit, NodePolicy::random_fit, NodePolicy::gpu_packing, NodePolicy::topology_aware}) {
      best = std::min(best, cost_of(policy, choice, setting, cluster));
    }
    const double ratio = best / cost_of(NodePolicy::arnold, choice, setting, cluster);
    ratios.sum += ratio;
    ratios.most = std::max(ratios.most, ratio);
    ratios.least = std::min(ratios.least, ratio);
    ++ratios.count;
  }
  return ratios;
}

}  // namespace

// Published: at most 1.67 times better than the best baseline, 1.2 times in the mean, no difference in (i) and as alpha
// becomes 1 (arXiv 2509.15940, 7.1). The mean depends on the free nodes, which are not published. Those drawn here give
// 1.02, 1.01 and 1.00 in (i) for alpha 0.2, 0.5 and 0.8, 1.12, 1.10 and 1.03 in (ii), 1.27, 1.10 and 1.03 in
// (iii), 1.08 in the mean, over the baseline that is best for the draw. The most does not depend on them: where a
// baseline has as many pods and a pipeline in two of them, it is (2 alpha + 2 beta) / (2 alpha + beta) for a job in two
// pods, which is 1.67 for alpha 0.2.
TEST_CASE("the paper's simulations: never worse, at most 1.67 times better, no better with alpha 1 or in the small one",
          "[node_choice]") {
  const std::vector<Setting> settings = {{3, 6, {6, 2, true}}, {5, 88, {12, 8, true}}, {11, 93, {46, 8, true}}};
  double most = 0;
  Ratios all;
  for (std::size_t i = 0; i < settings.size(); ++i) {
    for (const double alpha : {0.2, 0.5, 0.8, 1.0}) {
      const Ratios ratios = best_baseline_over_arnold(settings[i], alpha);
      CAPTURE(i, alpha, ratios.mean(), ratios.most, ratios.count);
      REQUIRE(ratios.count > 15);
      CHECK(ratios.least >= 1 - 1e-9);
      CHECK(ratios.most <= 2 / (2 * alpha + (1 - alpha)) + 1e-9);
      if (i == 0) CHECK(ratios.mean() < 1.05);
      if (alpha == 1) CHECK(ratios.most == Approx(1));
      if (i > 0 && alpha == 0.2) CHECK(ratios.mean() > 1.05);
      most = std::max(most, ratios.most);
      all.sum += ratios.mean();
      ++all.count;
    }
  }
  CHECK(most == Approx(5.0 / 3));
  CAPTURE(all.mean());
  CHECK(all.mean() > 1.03);
  CHECK(all.mean() < 1.2);
}

}  // namespace hdpsim
