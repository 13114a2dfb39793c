#pragma once

#include <chrono>
#include <functional>

#include "kernels/cuda/cuda_backend.h"
#include "kernels/spec/backend.h"
#include "kernels/transport/transport.h"

namespace hdpsim::kernels {

/// Runs `work` on `ranks` threads of this process, each with a backend of GPU `device`, which is a stream of its own,
/// and a transport between them: rings of any size on one GPU. Returns when all have ended; rethrows the error that
/// came first.
///
/// A message is one copy within the device on a stream of the receiver, ordered by events; no memory of its size is
/// allocated, and no kernel runs for it. It moves at the speed of the device's memory, which is unrelated to that of
/// links. wait() waits for the other end to start its part, but not for the device. Sums of collectives are added in
/// the order of ranks: deterministic. `limit` is how long a rank waits for a peer to start its part.
///
/// All ranks share the device's memory and multiprocessors; kernels of several ranks may run at the same time.
void run_local_gpu_ranks(int ranks, const std::function<void(Backend&, Transport&)>& work, int device = 0,
                         AttentionPath path = AttentionPath::best,
                         std::chrono::milliseconds limit = default_time_limit);

}  // namespace hdpsim::kernels
