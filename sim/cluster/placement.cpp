#include "sim/cluster/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace hdpsim {
namespace {

/// Another placement, with the nodes of a job in place of nodes 0, 1, 2, ...
class OnNodes final : public Placement {
 public:
  OnNodes(std::unique_ptr<Placement> placement, NodeList nodes, std::int64_t devices_per_node)
      : placement_(std::move(placement)), nodes_(std::move(nodes)), devices_per_node_(devices_per_node) {}
  [[nodiscard]] DeviceId device(HdpRank rank, std::int64_t pp_stage, std::int64_t tp_shard) const override {
    return nodes_.device(placement_->device(rank, pp_stage, tp_shard).index(), devices_per_node_);
  }

 private:
  std::unique_ptr<Placement> placement_;
  NodeList nodes_;
  std::int64_t devices_per_node_;
};

/// device = (stage x hdp + rank) x tp + shard
class Strided final : public Placement {
 public:
  explicit Strided(const Mesh& mesh) : mesh_(mesh) {}
  [[nodiscard]] DeviceId device(HdpRank rank, std::int64_t pp_stage, std::int64_t tp_shard) const override {
    const auto slice = pp_stage * mesh_.hdp + static_cast<std::int64_t>(rank.index());
    return DeviceId(static_cast<std::size_t>(slice * mesh_.tp + tp_shard));
  }

 private:
  Mesh mesh_;
};

/// device = (rank x pp + stage) x tp + shard
class Contiguous final : public Placement {
 public:
  explicit Contiguous(const Mesh& mesh) : mesh_(mesh) {}
  [[nodiscard]] DeviceId device(HdpRank rank, std::int64_t pp_stage, std::int64_t tp_shard) const override {
    const auto slice = static_cast<std::int64_t>(rank.index()) * mesh_.pp + pp_stage;
    return DeviceId(static_cast<std::size_t>(slice * mesh_.tp + tp_shard));
  }

 private:
  Mesh mesh_;
};

bool has_positive_axes(const Mesh& mesh, Diagnostics& diagnostics, const Position& position) {
  if (mesh.hdp >= 1 && mesh.tp >= 1 && mesh.pp >= 1) return true;
  diagnostics.error(position, fmt::format("a mesh of hdp {} x tp {} x pp {} holds no gpu", mesh.hdp, mesh.tp, mesh.pp),
                    "every axis is at least 1");
  return false;
}

bool fills_nodes(const Mesh& mesh, std::int64_t devices, std::string_view what, Diagnostics& diagnostics,
                 const Position& position) {
  // Multiplied as doubles first, because three absurd axes would overflow the exact product.
  const double about = static_cast<double>(mesh.hdp) * static_cast<double>(mesh.tp) * static_cast<double>(mesh.pp);
  const bool countable = about < 1e18;
  if (countable && mesh.devices() == devices) return true;
  const std::int64_t slice = countable ? mesh.tp * mesh.pp : 0;
  diagnostics.error(
      position,
      fmt::format("a mesh of hdp {} x tp {} x pp {} has {} gpus, {} {}", mesh.hdp, mesh.tp, mesh.pp,
                  countable ? fmt::format("{}", mesh.devices()) : fmt::format("{:.3g}", about), what, devices),
      slice > 0 && devices % slice == 0 ? fmt::format("write hdp {}", devices / slice)
                                        : "make hdp x tp x pp the number of gpus");
  return false;
}

bool tp_fits_nodes(const Mesh& mesh, const ClusterSpec& cluster, Diagnostics& diagnostics, const Position& position) {
  const std::int64_t node = cluster.devices_per_node;
  if (node % mesh.tp == 0 || mesh.tp % node == 0) return true;
  diagnostics.unsupported(
      position, fmt::format("tp {} is neither a part nor a multiple of a node of {} gpus", mesh.tp, node),
      fmt::format("the shards of a stage share a node or fill several: write a divisor of {}", node));
  return false;
}

bool blocks_share_a_node(const Placement& placement, const Mesh& mesh, const ClusterSpec& cluster, std::int64_t block) {
  const auto node = [&](std::int64_t rank, std::int64_t stage) {
    return cluster.node_of(placement.device(HdpRank(static_cast<std::size_t>(rank)), stage, 0));
  };
  for (std::int64_t stage = 0; stage < mesh.pp; ++stage) {
    for (std::int64_t rank = 0; rank < mesh.hdp; ++rank) {
      if (node(rank, stage) != node(rank - rank % block, stage)) return false;
    }
  }
  return true;
}

}  // namespace

std::vector<std::string> placement_names() {
  return {"strided", "contiguous"};
}

std::unique_ptr<Placement> make_placement(std::string_view name, const Mesh& mesh, const ClusterSpec& cluster,
                                          Diagnostics& diagnostics, const Position& position, const NodeList& nodes) {
  const std::vector<std::string> names = placement_names();
  const bool known = std::find(names.begin(), names.end(), name) != names.end();
  if (!known) diagnostics.error(position, fmt::format("there is no placement '{}'", name), suggestion(name, names));
  if (!has_positive_axes(mesh, diagnostics, position)) return nullptr;
  const bool everywhere = nodes.count(cluster) == cluster.nodes();
  const char* what = everywhere ? "the cluster has" : "its nodes have";
  const bool fills = fills_nodes(mesh, nodes.devices(cluster), what, diagnostics, position);
  const bool fits = tp_fits_nodes(mesh, cluster, diagnostics, position);
  if (!known || !fills || !fits) return nullptr;
  std::unique_ptr<Placement> placement;
  if (name == "strided") {
    placement = std::make_unique<Strided>(mesh);
  } else {
    placement = std::make_unique<Contiguous>(mesh);
  }
  if (nodes.is_all()) return placement;
  return std::make_unique<OnNodes>(std::move(placement), nodes, cluster.devices_per_node);
}

std::int64_t ranks_per_node(const Placement& placement, const Mesh& mesh, const ClusterSpec& cluster) {
  for (std::int64_t block = std::min(mesh.hdp, cluster.devices_per_node / mesh.tp); block > 1; --block) {
    if (mesh.hdp % block == 0 && blocks_share_a_node(placement, mesh, cluster, block)) return block;
  }
  return 1;
}

}  // namespace hdpsim
