#pragma once

#include <optional>

#include "sim/network/nccl_model.h"
#include "sim/profile/device_profile.h"

namespace hdpsim {

/// What a profile's line says of a collective (CollectiveRate, SendRecvRate), instead of NCCL's model of itself.
/// Nothing where the profile has no line for this kind on this span, which is NVLink for one node and the network for
/// several.
///
/// Steps inside nodes cost what the line of NVLink says, those between nodes what that of the network says; the slower
/// of the two sets the rate: NVLink, or the share of the NIC, of a node all NICs together where its devices divide the
/// data. `group`: with the physical rates of the cluster. Algorithm and protocol are not known; they are left as they
/// are by default.
[[nodiscard]] std::optional<CollectiveTime> profiled_collective(const DeviceProfile& profile, const NcclGroup& group,
                                                                CollectiveKind kind, std::int64_t bytes);

}  // namespace hdpsim
