#pragma once

#include "kernels/transport/transport.h"

namespace hdpsim::kernels {

/// The transport of this process, for all tests of the program. Every rank runs the same tests in the same order.
[[nodiscard]] Transport& mpi_transport();

}  // namespace hdpsim::kernels
