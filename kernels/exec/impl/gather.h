#pragma once

#include <vector>

#include "kernels/exec/impl/recorder.h"
#include "kernels/transport/transport.h"
#include "sim/plan/plan.h"

namespace hdpsim::kernels::exec {

/// The logs of all ranks as one timeline. A wait for an exchange counts as group_wait until the rank before in the ring
/// had posted its side, then as cp_comm; what no rank has booked is overhead, and what is left after a rank's end
/// group_wait. O(n log n) in records.
[[nodiscard]] Timeline assemble(const Plan& plan, const std::vector<RankLog>& logs);

/// A collective: rank 0 gets the logs of all ranks, the others nothing.
[[nodiscard]] std::vector<RankLog> gather_logs(Transport& transport, const RankLog& log);

}  // namespace hdpsim::kernels::exec
