#pragma once

#include <cstdint>
#include <vector>

#include "sim/program/schedule.h"

namespace hdpsim {

/// The most chunks whose activations each stage holds at a time when every rank runs so many micro-batches: counted
/// along the order of its passes, by stage. A schedule that holds a bounded number holds it by 2 stages micro-batches, so
/// no more are looked at: O(passes of min(micro_batches, 2 stages) micro-batches).
[[nodiscard]] std::vector<std::int64_t> most_chunks_in_flight(const Schedule& schedule, std::int64_t micro_batches);
/// Whether a stage holds ever more micro-batches as a rank has more of them.
[[nodiscard]] bool holds_all_micro_batches(const Schedule& schedule);

}  // namespace hdpsim
