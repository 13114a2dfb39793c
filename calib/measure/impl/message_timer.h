#pragma once

#include <functional>
#include <vector>

#include "calib/measure/subject.h"
#include "kernels/transport/transport.h"

namespace hdpsim::calib {

/// Seconds of one operation in each of `runs` measurements on this rank: `before_each`, a barrier, then the operation.
/// Called by all ranks at once. Every rank's buffers hold random numbers. Sizes are those of nccl-tests: all-reduce
/// works on `bytes`; all-gather, reduce-scatter and all-to-all on `bytes` of all ranks together; send/recv moves
/// `bytes` to the next rank while as much arrives from the one before.
[[nodiscard]] std::vector<double> time_message(kernels::Transport& transport, const MessageSubject& message, int runs,
                                               const std::function<void()>& before_each);

}  // namespace hdpsim::calib
