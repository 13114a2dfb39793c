#pragma once

#include <fmt/format.h>
#include <mpi.h>

#include <array>

#include "kernels/spec/error.h"

namespace hdpsim::kernels {

/// DeviceError, with MPI's reason, unless a call has succeeded.
inline void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw DeviceError(fmt::format("{}: {}", call, text.data()));
}

/// Starts MPI where nobody has; true if it did. DeviceError if MPI has ended, or cannot be called by threads in turn.
bool start_mpi();

}  // namespace hdpsim::kernels
