#pragma once

#include "sim/cluster/placement.h"

namespace hdpsim {

/// device = (stage x hdp + rank) x tp + shard
class Strided final : public Placement {
 public:
  explicit Strided(const Mesh& mesh) : mesh_(mesh) {}
  [[nodiscard]] DeviceId device(HdpRank rank, std::int64_t pp_stage, std::int64_t tp_shard) const override;

 private:
  Mesh mesh_;
};

}  // namespace hdpsim
