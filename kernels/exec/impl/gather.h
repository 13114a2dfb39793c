#pragma once

#include <vector>

#include "kernels/exec/impl/recorder.h"
#include "kernels/transport/transport.h"
#include "sim/program/program.h"

namespace hdpsim::kernels::exec {

/// The logs of all workers as one timeline. A wait for a send/recv counts as group_wait until the previous rank of the
/// ring has posted its side, then as cp_comm. Time that no worker has booked is overhead, and the time after a worker's
/// end is group_wait, or bubble in a pipeline. O(n log n) in records.
[[nodiscard]] Timeline assemble(const Program& program, const std::vector<RankLog>& logs);

/// Gathers the logs of all ranks on rank 0; the others get an empty list. A collective.
[[nodiscard]] std::vector<RankLog> gather_logs(Transport& transport, const RankLog& log);

}  // namespace hdpsim::kernels::exec
