#pragma once

#include "sim/profile/profile_fits.h"

namespace hdpsim {

/// Seconds of one transfer of `bytes` bytes, or of one kernel that reads and writes them.
[[nodiscard]] double fitted_seconds(const TransferCurve& curve, double bytes);
[[nodiscard]] double fitted_seconds(const CopyFit& fit, double bytes);
/// Seconds of a message; `bytes` as in the size column of nccl-tests.
[[nodiscard]] double fitted_seconds(const MessageFit& fit, double bytes);

/// The fit of messages of one kind over one kind of link among so many ranks. Null if there is none.
[[nodiscard]] const MessageFit* message_fit(const ProfileFits& fits, LinkKind link, MessageKind kind,
                                            std::int64_t ranks);

}  // namespace hdpsim
