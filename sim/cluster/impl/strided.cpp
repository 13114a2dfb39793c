#include "sim/cluster/impl/strided.h"

namespace hdpsim {

DeviceId Strided::device(HdpRank rank, std::int64_t pp_stage, std::int64_t tp_shard) const {
  const auto slice = pp_stage * mesh_.hdp + static_cast<std::int64_t>(rank.index());
  return DeviceId(static_cast<std::size_t>(slice * mesh_.tp + tp_shard));
}

}  // namespace hdpsim
