#pragma once

#include "sim/cluster/placement.h"

namespace hdpsim {

/// device = (rank x pp + stage) x tp + shard
class Contiguous final : public Placement {
 public:
  explicit Contiguous(const Mesh& mesh) : mesh_(mesh) {}
  [[nodiscard]] DeviceId device(HdpRank rank, std::int64_t pp_stage, std::int64_t tp_shard) const override;

 private:
  Mesh mesh_;
};

}  // namespace hdpsim
