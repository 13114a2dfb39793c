#pragma once

#include <fmt/format.h>
#include <mpi.h>

#include <array>

#include "kernels/spec/error.h"

namespace hdpsim::kernels {

/// DeviceError, with MPI's reason, unless the call has succeeded.
inline void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw DeviceError(fmt::format("{}: {}", call, text.data()));
}

/// Starts MPI if it is not running; true if it did. DeviceError if MPI has ended, or does not support calls by threads
/// in turn.
inline bool start_mpi() {
  int finalized = 0;
  check_mpi(MPI_Finalized(&finalized), "MPI_Finalized");
  if (finalized != 0) throw DeviceError("MPI has ended in this process and cannot start again");
  int initialized = 0;
  check_mpi(MPI_Initialized(&initialized), "MPI_Initialized");
  int provided = MPI_THREAD_SINGLE;
  if (initialized != 0) {
    check_mpi(MPI_Query_thread(&provided), "MPI_Query_thread");
  } else {
    check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread");
  }
  if (provided < MPI_THREAD_SERIALIZED) throw DeviceError("MPI_Init_thread: threads are not supported (SERIALIZED)");
  return initialized == 0;
}

}  // namespace hdpsim::kernels
