#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/cluster.h"
#include "sim/cluster/placement.h"

namespace hdpsim {

/// The units of one tier of switches: messages that leave a pod pass the tiers above it.
class Pods {
 public:
  /// `tier` is an index into the cluster's tiers.
  Pods(const ClusterSpec& cluster, std::size_t tier);

  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] std::size_t of(NodeId node) const { return node.index() / nodes_each_; }
  /// The nodes of a pod; the last pod may have fewer than the others.
  [[nodiscard]] std::int64_t nodes(std::size_t pod) const;
  [[nodiscard]] NodeId first(std::size_t pod) const { return NodeId(pod * nodes_each_); }
  /// "spine 3".
  [[nodiscard]] std::string name(std::size_t pod) const;
  /// Of these nodes, how many are in each pod.
  [[nodiscard]] std::vector<std::int64_t> counts(const std::vector<NodeId>& nodes) const;

 private:
  std::string tier_;
  std::size_t all_nodes_ = 0;
  std::size_t nodes_each_ = 1;
  std::size_t count_ = 1;
};

/// The highest tier of which the cluster has several units: the one below the topmost that it uses. Empty if it has no
/// such tier.
[[nodiscard]] std::optional<std::size_t> usual_pod_tier(const ClusterSpec& cluster);

/// How far the groups of a job are spread over pods: that of a group in one pod is 0, of one in k > 1 pods k.
struct PodSpread {
  std::int64_t pods = 0;  ///< Those of the whole job.
  std::int64_t data_parallel_max = 0;
  double data_parallel_mean = 0;  ///< Over the groups: the devices of all ranks with the same stage and shard.
  std::int64_t pipeline_max = 0;
  double pipeline_mean = 0;  ///< Over the pipelines: the devices of all stages with the same rank and shard.

  /// alpha x data_parallel_max + (1 - alpha) x pipeline_max: equation 2 of Arnold (arXiv 2509.15940).
  [[nodiscard]] double score(double alpha) const;
};
/// O(devices).
[[nodiscard]] PodSpread pod_spread(const Placement& placement, const Mesh& mesh, const ClusterSpec& cluster,
                                   const Pods& pods);

}  // namespace hdpsim
