#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/base/id.h"
#include "sim/cluster/cluster.h"
#include "sim/cluster/node_list.h"
#include "sim/cluster/placement.h"
#include "sim/cluster/pods.h"

namespace hdpsim {

/// How a scheduler takes the nodes of a job from those that are free. All but the last take them in the order of the
/// ranks, so that a node has consecutive ranks; they are the baselines of Arnold (arXiv 2509.15940).
enum class NodePolicy {
  in_order,        ///< The first ones.
  best_fit,        ///< Of the pod with the fewest free nodes first.
  random_fit,      ///< Each of any pod with free nodes, by lot.
  gpu_packing,     ///< Of the smallest pod that has enough; while none has, all of the one with most.
  topology_aware,  ///< Dual recursive bipartition of the pods and of the ranks: see node_choice.cpp.
  arnold,          ///< As divide_units() divides pipelines among pods.
};

/// What a scheduler chooses from, and how.
struct NodeChoice {
  NodePolicy policy = NodePolicy::in_order;
  double alpha = 0;        ///< DivisionTask::alpha, for `arnold`.
  std::uint64_t seed = 0;  ///< Of what `random_fit` draws.
  /// A pod is a unit of this tier; empty: the whole cluster is one.
  std::optional<std::size_t> pod_tier;
  std::vector<NodeId> free;  ///< Ascending.
};

/// The nodes of a job as a matrix: a row has the pipelines of one node's ranks, a column the data-parallel groups.
struct NodeMatrix {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  bool by_rows = false;  ///< Whether the places of a row are consecutive in the order of ranks, or those of a column.

  [[nodiscard]] std::int64_t nodes() const { return rows * columns; }
  /// The place of a cell in the order of ranks.
  [[nodiscard]] std::size_t place(std::int64_t row, std::int64_t column) const {
    return static_cast<std::size_t>(by_rows ? row * columns + column : column * rows + row);
  }
};
/// The matrix of a mesh under a placement of placement_names(). Empty if a node would have parts of two rows or columns
/// that others have alone, as with `strided` where a stage does not fill whole nodes.
[[nodiscard]] std::optional<NodeMatrix> node_matrix(std::string_view placement, const Mesh& mesh,
                                                    std::int64_t devices_per_node);

/// The nodes of a job, by place in the order of ranks.
struct ChosenNodes {
  NodeList nodes;
  /// What the choice of `arnold` may cost above the least, in parts of that: 0 unless its search was given up.
  double gap = 0;
};
/// Chooses `matrix.nodes()` of the free nodes, of which there are as many (checked).
[[nodiscard]] ChosenNodes choose_nodes(const NodeChoice& choice, const NodeMatrix& matrix, const ClusterSpec& cluster);

}  // namespace hdpsim
