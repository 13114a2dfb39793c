#pragma once

#include <memory>
#include <utility>

#include "sim/cluster/node_list.h"
#include "sim/cluster/placement.h"

namespace hdpsim {

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

}  // namespace hdpsim
