#include "sim/cluster/impl/contiguous.h"

namespace hdpsim {

DeviceId Contiguous::device(HdpRank rank, std::int64_t pp_stage, std::int64_t tp_shard) const {
  const auto slice = static_cast<std::int64_t>(rank.index()) * mesh_.pp + pp_stage;
  return DeviceId(static_cast<std::size_t>(slice * mesh_.tp + tp_shard));
}

}  // namespace hdpsim
