#include "sim/cluster/node_choice.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/random.h"
#include "sim/cluster/unit_division.h"

namespace hdpsim {
namespace {

/// The free nodes of each pod. Nodes of a pod are taken in ascending order.
class FreeNodes {
 public:
  FreeNodes(const NodeChoice& choice, const ClusterSpec& cluster) {
    if (!choice.pod_tier) {
      of_pod_.push_back(choice.free);
    } else {
      const Pods pods(cluster, *choice.pod_tier);
      of_pod_.resize(pods.count());
      for (const NodeId node : choice.free) of_pod_[pods.of(node)].push_back(node);
    }
    taken_.resize(of_pod_.size());
  }

  [[nodiscard]] std::size_t pods() const { return of_pod_.size(); }
  [[nodiscard]] std::int64_t left(std::size_t pod) const { return std::ssize(of_pod_[pod]) - taken_[pod]; }
  [[nodiscard]] std::vector<std::int64_t> left() const {
    std::vector<std::int64_t> all;
    for (std::size_t pod = 0; pod < pods(); ++pod) all.push_back(left(pod));
    return all;
  }
  [[nodiscard]] std::int64_t left(std::size_t first, std::size_t end) const {
    std::int64_t sum = 0;
    for (std::size_t pod = first; pod < end; ++pod) sum += left(pod);
    return sum;
  }

  NodeId take(std::size_t pod) { return of_pod_.at(pod).at(static_cast<std::size_t>(taken_[pod]++)); }
  /// As many of these as the pod has; returns how many.
  std::int64_t take(std::size_t pod, std::int64_t most, std::vector<NodeId>& nodes) {
    const std::int64_t count = std::min(most, left(pod));
    for (std::int64_t i = 0; i < count; ++i) nodes.push_back(take(pod));
    return count;
  }

 private:
  std::vector<std::vector<NodeId>> of_pod_;
  std::vector<std::int64_t> taken_;
};

std::vector<NodeId> best_fit(FreeNodes& free, std::int64_t count) {
  std::vector<std::size_t> pods(free.pods());
  std::iota(pods.begin(), pods.end(), std::size_t{0});
  std::stable_sort(pods.begin(), pods.end(), [&](std::size_t a, std::size_t b) { return free.left(a) < free.left(b); });
  std::vector<NodeId> nodes;
  for (const std::size_t pod : pods) count -= free.take(pod, count, nodes);
  return nodes;
}

std::vector<NodeId> random_fit(FreeNodes& free, std::int64_t count, std::uint64_t seed) {
  RandomStream random(seed, "random_fit");
  std::vector<std::size_t> pods;
  for (std::size_t pod = 0; pod < free.pods(); ++pod) {
    if (free.left(pod) > 0) pods.push_back(pod);
  }
  std::vector<NodeId> nodes;
  for (; count > 0; --count) {
    const auto drawn = static_cast<std::ptrdiff_t>(random.below(pods.size()));
    const std::size_t pod = pods[static_cast<std::size_t>(drawn)];
    nodes.push_back(free.take(pod));
    if (free.left(pod) == 0) pods.erase(pods.begin() + drawn);
  }
  return nodes;
}

// The smallest pod that has so many nodes left, or else the one with most.
std::size_t tightest(const FreeNodes& free, std::int64_t count) {
  std::size_t best = 0;
  for (std::size_t pod = 1; pod < free.pods(); ++pod) {
    const bool has_enough = free.left(best) >= count;
    const bool is_better =
        has_enough ? free.left(pod) >= count && free.left(pod) < free.left(best) : free.left(pod) > free.left(best);
    if (is_better) best = pod;
  }
  return best;
}

std::vector<NodeId> gpu_packing(FreeNodes& free, std::int64_t count) {
  std::vector<NodeId> nodes;
  while (count > 0) count -= free.take(tightest(free, count), count, nodes);
  return nodes;
}

/// Dual recursive bipartition (Amaral et al., SC'17): the pods are halved, so that the halves have about as many free
/// nodes, and the job goes to the smaller half that has room for all of it. Where none has, its ranks are cut into two
/// parts as large as the halves are. They are cut in their order, at the end of a line of the matrix if the halves have
/// room for that, where the cut severs no group of such a line; the original moves ranks over the cut one by one
/// (Fiduccia and Mattheyses), which knows the job as a graph.
class Bipartition {
 public:
  Bipartition(FreeNodes& free, const NodeMatrix& matrix)
      : free_(free), line_(matrix.by_rows ? matrix.columns : matrix.rows) {}

  std::vector<NodeId> run(std::int64_t count) {
    divide(0, free_.pods(), 0, count);
    return std::move(nodes_);
  }

 private:
  // The places [from, to) go to the pods [first, end), which have room for them.
  void divide(std::size_t first, std::size_t end, std::int64_t from, std::int64_t to) {
    if (from == to) return;
    if (end - first == 1) {
      (void)free_.take(first, to - from, nodes_);
      return;
    }
    const std::size_t middle = half(first, end);
    const std::int64_t lower = free_.left(first, middle);
    const std::int64_t upper = free_.left(middle, end);
    const std::int64_t count = to - from;
    const bool lower_fits = lower >= count;
    const bool upper_fits = upper >= count;
    if (lower_fits && (!upper_fits || lower <= upper)) return divide(first, middle, from, to);
    if (upper_fits) return divide(middle, end, from, to);
    const std::int64_t cut = best_cut(from, to, lower, upper);
    divide(first, middle, from, cut);
    divide(middle, end, cut, to);
  }

  [[nodiscard]] std::size_t half(std::size_t first, std::size_t end) const {
    const std::int64_t all = free_.left(first, end);
    std::size_t best = first + 1;
    std::int64_t below = 0;
    std::int64_t least = all;
    for (std::size_t middle = first + 1; middle < end; ++middle) {
      below += free_.left(middle - 1);
      const std::int64_t difference = std::abs(all - 2 * below);
      if (difference >= least) continue;
      least = difference;
      best = middle;
    }
    return best;
  }

  [[nodiscard]] std::int64_t best_cut(std::int64_t from, std::int64_t to, std::int64_t lower,
                                      std::int64_t upper) const {
    const std::int64_t least = to - upper;
    const std::int64_t most = from + lower;
    const std::int64_t even = std::clamp(from + (to - from) * lower / (lower + upper), least, most);
    const std::int64_t before = even / line_ * line_;
    const std::int64_t after = before + line_;
    const bool before_fits = before >= least && before > from;
    const bool after_fits = after <= most && after < to;
    if (before_fits && (!after_fits || even - before <= after - even)) return before;
    return after_fits ? after : even;
  }

  FreeNodes& free_;
  std::int64_t line_;
  std::vector<NodeId> nodes_;
};

ChosenNodes arnold(FreeNodes& free, const NodeMatrix& matrix, double alpha) {
  const UnitDivision division =
      divide_units({.units = matrix.rows, .nodes = matrix.columns, .free = free.left(), .alpha = alpha});
  std::vector<std::size_t> pod_of(static_cast<std::size_t>(matrix.nodes()));
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    std::int64_t column = 0;
    for (const auto& [pod, nodes] : division.units[static_cast<std::size_t>(row)]) {
      for (const std::int64_t end = column + nodes; column < end; ++column) pod_of[matrix.place(row, column)] = pod;
    }
  }
  std::vector<NodeId> nodes;
  nodes.reserve(pod_of.size());
  for (const std::size_t pod : pod_of) nodes.push_back(free.take(pod));
  return {NodeList(std::move(nodes)), division.cost / division.least_cost - 1};
}

}  // namespace

std::optional<NodeMatrix> node_matrix(std::string_view placement, const Mesh& mesh, std::int64_t devices_per_node) {
  const bool by_rows = placement != usual_placement;
  // Devices that follow each other in the order of ranks: those of a stage, or those of a rank.
  const std::int64_t line = by_rows ? mesh.pp * mesh.tp : mesh.hdp * mesh.tp;
  const std::int64_t lines = by_rows ? mesh.hdp : mesh.pp;
  if (line % devices_per_node == 0) {
    const std::int64_t in_line = line / devices_per_node;
    return by_rows ? NodeMatrix{lines, in_line, true} : NodeMatrix{in_line, lines, false};
  }
  // Whole lines share a node: a pipeline, or a data-parallel group, never leaves it.
  if (devices_per_node % line != 0 || line * lines % devices_per_node != 0) return std::nullopt;
  const std::int64_t nodes = line * lines / devices_per_node;
  return by_rows ? NodeMatrix{nodes, 1, true} : NodeMatrix{1, nodes, false};
}

ChosenNodes choose_nodes(const NodeChoice& choice, const NodeMatrix& matrix, const ClusterSpec& cluster) {
  const std::int64_t count = matrix.nodes();
  HDPSIM_CHECK(std::ssize(choice.free) >= count, "{} nodes of {} free ones", count, choice.free.size());
  FreeNodes free(choice, cluster);
  switch (choice.policy) {
    case NodePolicy::in_order:
      return {NodeList({choice.free.begin(), choice.free.begin() + count})};
    case NodePolicy::best_fit:
      return {NodeList(best_fit(free, count))};
    case NodePolicy::random_fit:
      return {NodeList(random_fit(free, count, choice.seed))};
    case NodePolicy::gpu_packing:
      return {NodeList(gpu_packing(free, count))};
    case NodePolicy::topology_aware:
      return {NodeList(Bipartition(free, matrix).run(count))};
    case NodePolicy::arnold:
      return arnold(free, matrix, choice.alpha);
  }
  return {};
}

}  // namespace hdpsim
