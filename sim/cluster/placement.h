#pragma once

#include <cstdint>

#include "sim/base/id.h"

namespace hdpsim {

/// The mesh of a study: hdp ranks of tp x pp devices each (ep will follow).
struct Mesh {
  std::int64_t hdp = 1;
  std::int64_t tp = 1;
  std::int64_t pp = 1;
  [[nodiscard]] std::int64_t devices() const { return hdp * tp * pp; }
};

/// Which device runs which part of which HDP rank.
class Placement {
 public:
  virtual ~Placement() = default;
  [[nodiscard]] virtual DeviceId device(HdpRank rank, std::int64_t pp_stage, std::int64_t tp_shard) const = 0;
};

}  // namespace hdpsim
