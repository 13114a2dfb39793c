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
bool start_mpi();

}  // namespace hdpsim::kernels
