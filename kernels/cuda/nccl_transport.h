#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include "kernels/spec/backend.h"
#include "kernels/transport/transport.h"

namespace hdpsim::kernels {

struct NcclOptions {
  /// How long a peer may be silent once everything else is done.
  std::chrono::milliseconds limit = default_time_limit;
  /// Most thread blocks, and so multiprocessors, of an operation; 0 leaves it to NCCL.
  int most_thread_blocks = 0;
};

/// Sends the bytes of rank 0 to all ranks, by any means.
using Broadcast = std::function<void(std::span<std::byte>)>;

/// A rank of NCCL, one process or thread per GPU, in ONE communicator over all ranks: rings of any members are grouped
/// sends and receives within it, because a communicator takes seconds to make and hundreds of megabytes per GPU. The
/// first message between two ranks sets up their connection and is slow.
///
/// Messages run on a stream of their own, ordered with the backend's by events; no call waits for the device. Messages
/// of a rank to itself match only within one group. Empty messages are not sent.
///
/// A thread watches the queued operations. If a peer dies or is silent for the limit, or NCCL reports a failure, all
/// queued operations end, and their receive buffers are undefined. The next call throws a DeviceError that says who
/// waited for whom: call progress() after Backend::synchronize() before results are trusted.
///
/// `backend` is one of make_cuda_backend() and must outlive the transport. All ranks call this together. DeviceError if
/// NCCL (2.18 or later) is missing, two ranks have the same GPU, or a rank does not come within the limit.
[[nodiscard]] std::unique_ptr<Transport> make_nccl_transport(Backend& backend, int rank, int size,
                                                             const Broadcast& broadcast,
                                                             const NcclOptions& options = {});

/// The same with the ranks of `bootstrap`, a transport of host memory such as MPI's, which is only used during the
/// call.
[[nodiscard]] std::unique_ptr<Transport> make_nccl_transport(Backend& backend, Transport& bootstrap,
                                                             const NcclOptions& options = {});

}  // namespace hdpsim::kernels
