#pragma once

#include <chrono>
#include <cstddef>
#include <memory>

#include "kernels/transport/transport.h"

namespace hdpsim::kernels {

/// The longest message in one piece, because MPI counts bytes in an int.
inline constexpr std::size_t largest_mpi_piece = std::size_t{1} << 30;

/// The transport of this process among those that mpirun started; a process started alone is the only rank.
///
/// Starts MPI if it is not running and ends it with the transport, so that a process can have only one such object in
/// its life. MPI moves long messages only inside its own calls: they overlap with work only if progress() is called
/// between pieces of it. All ranks give the same `largest_piece`.
///
/// A rank that fails notifies the others, whose wait() then throws a DeviceError too. It does not end MPI, which could
/// wait for the others for ever: when the process exits, it gives them two seconds to report and then aborts the job
/// with its own exit code. The same happens if an exception destroys the transport, and if a rank hangs when the
/// others have finished: the job then succeeds if rank 0 does, which has all results.
///
/// DeviceError if the program was built without MPI, or MPI refuses.
[[nodiscard]] std::unique_ptr<Transport> make_mpi_transport(std::chrono::milliseconds limit = default_time_limit,
                                                            std::size_t largest_piece = largest_mpi_piece);

}  // namespace hdpsim::kernels
