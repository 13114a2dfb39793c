#pragma once

#include <vector>

#include "calib/measure/subject.h"
#include "kernels/transport/transport.h"

namespace hdpsim::calib {

/// Seconds of one operation in each of `runs` measurements on this rank, as nccl-tests measures: a barrier, then several
/// operations back to back, whose time is divided by their number. Called by all ranks at once. Every rank's buffers hold
/// random numbers. Sizes: all-reduce works on `bytes`; all-gather, reduce-scatter and all-to-all on `bytes` of all ranks
/// together; send/recv moves `bytes` to the next rank while as much arrives from the one before.
[[nodiscard]] std::vector<double> time_message(kernels::Transport& transport, const MessageSubject& message, int runs);

}  // namespace hdpsim::calib
