#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/base/expert_division.h"
#include "sim/base/id.h"
#include "sim/cluster/cluster.h"
#include "sim/cluster/node_list.h"

namespace hdpsim {

/// The mesh of a study: hdp ranks of tp x pp devices each. Of a stage's devices, ordered rank by rank with tp
/// innermost, ep consecutive ones form an expert group: inside a rank if ep divides tp, else ep / tp ranks.
struct Mesh {
  std::int64_t hdp = 1;
  std::int64_t tp = 1;
  std::int64_t pp = 1;
  std::int64_t ep = 1;   ///< See ExpertDivision.
  std::int64_t etp = 1;  ///< See ExpertDivision.
  /// Consecutive HDP ranks that shard parameters, gradients or the optimizer among each other, as ZeRO's level says;
  /// the other ranks hold the same shards (hybrid sharding). 0: all ranks shard them.
  std::int64_t shard_ranks = 0;
  [[nodiscard]] std::int64_t devices() const { return hdp * tp * pp; }
  [[nodiscard]] bool shards_in_groups() const { return shard_ranks > 0 && shard_ranks < hdp; }
  [[nodiscard]] std::int64_t ranks_of_a_shard_group() const { return shards_in_groups() ? shard_ranks : hdp; }
  [[nodiscard]] ExpertDivision experts() const { return {ep, etp}; }
  /// Devices that hold the same experts where groups divide these: in all ranks, and in those of a shard group.
  [[nodiscard]] std::int64_t expert_pool() const { return std::max<std::int64_t>(1, hdp * tp / experts().devices()); }
  [[nodiscard]] std::int64_t expert_shards() const {
    return std::max<std::int64_t>(1, ranks_of_a_shard_group() * tp / experts().devices());
  }
  /// Whether several devices have the same parameters, or the same experts.
  [[nodiscard]] bool has_data_parallelism() const { return hdp > 1 || (experts().has_groups() && expert_pool() > 1); }
};

/// The device of each part of each HDP rank. A bijection: every device of the job's nodes runs exactly one part. The tp
/// shards of a stage share a node, or fill several.
class Placement {
 public:
  virtual ~Placement() = default;
  [[nodiscard]] virtual DeviceId device(HdpRank rank, std::int64_t pp_stage, std::int64_t tp_shard) const = 0;
};

/// The names of the placements. `strided`: tp innermost, then hdp, then pp; HDP ranks share a node, and stages are far
/// apart: tp-cp-ep-dp-pp, the order of Megatron-LM, DeepSpeed and torchtitan. `contiguous`: tp innermost, then pp, then
/// hdp; all devices of an HDP rank are neighbours.
inline constexpr std::string_view usual_placement = "strided";
[[nodiscard]] std::vector<std::string> placement_names();

/// The placement on `nodes` as if they were the whole cluster. Null, with every problem reported at `position`, if
/// there is no placement of this name, the mesh does not have as many devices as the nodes, or the tp shards of a stage
/// neither share a node nor fill several.
[[nodiscard]] std::unique_ptr<Placement> make_placement(std::string_view name, const Mesh& mesh,
                                                        const ClusterSpec& cluster, Diagnostics& diagnostics,
                                                        const Position& position = {}, const NodeList& nodes = {});

/// The largest n such that each block of HDP ranks kn ... kn + n - 1 shares a node, stage by stage; at least 1, and a
/// divisor of mesh.hdp.
[[nodiscard]] std::int64_t ranks_per_node(const Placement& placement, const Mesh& mesh, const ClusterSpec& cluster);

}  // namespace hdpsim
