#include "sim/cluster/pods.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/division.h"

namespace hdpsim {
namespace {

/// Counts the pods of one group of devices after the other.
class PodCounter {
 public:
  explicit PodCounter(std::size_t pods) : last_group_(pods) {}

  void begin_group() {
    ++group_;
    distinct_ = 0;
  }
  void add(std::size_t pod) {
    if (last_group_[pod] == group_) return;
    last_group_[pod] = group_;
    ++distinct_;
  }
  [[nodiscard]] std::int64_t spread() const { return distinct_ > 1 ? distinct_ : 0; }
  [[nodiscard]] std::int64_t ever() const {
    return std::count_if(last_group_.begin(), last_group_.end(), [](std::int64_t group) { return group > 0; });
  }

 private:
  std::vector<std::int64_t> last_group_;  // by pod; 0: none
  std::int64_t group_ = 0;
  std::int64_t distinct_ = 0;
};

}  // namespace

Pods::Pods(const ClusterSpec& cluster, std::size_t tier)
    : tier_(cluster.tiers.at(tier).name),
      all_nodes_(static_cast<std::size_t>(cluster.nodes())),
      nodes_each_(static_cast<std::size_t>(cluster.nodes_per_unit(tier))),
      count_((all_nodes_ + nodes_each_ - 1) / nodes_each_) {}

std::int64_t Pods::nodes(std::size_t pod) const {
  return static_cast<std::int64_t>(std::min(nodes_each_, all_nodes_ - first(pod).index()));
}

std::string Pods::name(std::size_t pod) const {
  return fmt::format("{} {}", tier_, pod);
}

std::vector<std::int64_t> Pods::counts(const std::vector<NodeId>& nodes) const {
  std::vector<std::int64_t> counts(count_);
  for (const NodeId node : nodes) ++counts.at(of(node));
  return counts;
}

std::optional<std::size_t> usual_pod_tier(const ClusterSpec& cluster) {
  for (std::size_t tier = cluster.tiers.size(); tier > 0; --tier) {
    if (cluster.nodes_per_unit(tier - 1) < cluster.nodes()) return tier - 1;
  }
  return std::nullopt;
}

double PodSpread::score(double alpha) const {
  return alpha * static_cast<double>(data_parallel_max) + (1 - alpha) * static_cast<double>(pipeline_max);
}

PodSpread pod_spread(const Placement& placement, const Mesh& mesh, const ClusterSpec& cluster, const Pods& pods) {
  PodCounter counter(pods.count());
  PodSpread spread;
  const auto pod_of = [&](std::int64_t rank, std::int64_t stage, std::int64_t shard) {
    return pods.of(cluster.node_of(placement.device(HdpRank(static_cast<std::size_t>(rank)), stage, shard)));
  };
  for (std::int64_t slice = 0; slice < mesh.pp * mesh.tp; ++slice) {
    counter.begin_group();
    for (std::int64_t rank = 0; rank < mesh.hdp; ++rank) counter.add(pod_of(rank, slice / mesh.tp, slice % mesh.tp));
    spread.data_parallel_max = std::max(spread.data_parallel_max, counter.spread());
    spread.data_parallel_mean += static_cast<double>(counter.spread()) / static_cast<double>(mesh.pp * mesh.tp);
  }
  for (std::int64_t pipeline = 0; pipeline < mesh.hdp * mesh.tp; ++pipeline) {
    counter.begin_group();
    for (std::int64_t stage = 0; stage < mesh.pp; ++stage) {
      counter.add(pod_of(pipeline / mesh.tp, stage, pipeline % mesh.tp));
    }
    spread.pipeline_max = std::max(spread.pipeline_max, counter.spread());
    spread.pipeline_mean += static_cast<double>(counter.spread()) / static_cast<double>(mesh.hdp * mesh.tp);
  }
  spread.pods = counter.ever();
  return spread;
}

}  // namespace hdpsim
