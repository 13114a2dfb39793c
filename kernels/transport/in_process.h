#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "kernels/transport/transport.h"

namespace hdpsim::kernels {

/// Transports for `ranks` threads of this process: element i belongs to the thread of rank i, and only that thread may
/// use it.
///
/// A message is copied once, from the sender's buffer to the receiver's, in pieces, by whichever end has time for it in
/// progress() or wait(). Memory: a few words per message under way, independent of its size.
///
/// A transport that is destroyed, or whose wait() has thrown, has left: its messages end, the buffers of its rank are
/// no longer accessed, and every peer that waits for it throws a DeviceError. `limit` is how long a rank waits without
/// progress of any of its messages. The error shows what each rank waits for.
[[nodiscard]] std::vector<std::unique_ptr<Transport>> make_in_process_transports(
    int ranks, std::chrono::milliseconds limit = default_time_limit);

/// Runs `work` on `ranks` threads, each with its own transport, which is destroyed when `work` returns or throws.
/// Returns when all have ended; rethrows the error that came first, which is the cause of those that follow from it.
void run_ranks(int ranks, const std::function<void(Transport&)>& work,
               std::chrono::milliseconds limit = default_time_limit);

/// The same with transports that stay usable. After an error there are none left.
void run_ranks(std::vector<std::unique_ptr<Transport>>& transports, const std::function<void(Transport&)>& work);

}  // namespace hdpsim::kernels
