#pragma once

#include <vector>

#include "kernels/exec/impl/recorder.h"
#include "kernels/transport/transport.h"
#include "sim/program/program.h"

namespace hdpsim::kernels::exec {

/// The logs of all workers as one timeline. A wait for an exchange counts as group_wait until the rank before in the
/// ring had posted its side, then as cp_comm; what no worker has booked is overhead, and what is left after a worker's
/// end group_wait, or bubble in a pipeline. O(n log n) in records.
[[nodiscard]] Timeline assemble(const Program& program, const std::vector<RankLog>& logs);

/// A collective: rank 0 gets the logs of all ranks, the others nothing.
[[nodiscard]] std::vector<RankLog> gather_logs(Transport& transport, const RankLog& log);

}  // namespace hdpsim::kernels::exec
