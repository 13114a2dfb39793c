#pragma once

#include <chrono>
#include <cstddef>
#include <memory>

#include "kernels/transport/transport.h"

namespace hdpsim::kernels {

/// A message longer than this travels in pieces: MPI counts bytes in an int.
inline constexpr std::size_t largest_mpi_piece = std::size_t{1} << 30;

/// The transport of this process among those that mpirun started; a process started alone is one rank of one.
///
/// Starts MPI where nobody has and ends it with the transport, so a process has one such object in its life. MPI moves
/// long messages only inside its own calls: progress() between pieces of work is what makes them overlap.
/// All ranks give the same `largest_piece`.
///
/// A rank that fails tells the others, whose wait() then throws DeviceError too. It does not end MPI, which could wait
/// for the others for ever: when the process exits, it gives them two seconds to report and then aborts the job with
/// its own exit code. The same happens where the transport is destroyed by an exception, and where a rank stands still
/// when the others have no more to do: the job then ends in success if rank 0 does, which has all results.
///
/// DeviceError if the program was built without MPI, or MPI refuses.
[[nodiscard]] std::unique_ptr<Transport> make_mpi_transport(std::chrono::milliseconds limit = default_time_limit,
                                                            std::size_t largest_piece = largest_mpi_piece);

}  // namespace hdpsim::kernels
