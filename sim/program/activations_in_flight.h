#pragma once

#include <cstdint>
#include <vector>

#include "sim/program/schedule.h"

namespace hdpsim {

/// By stage: the largest number of chunks whose activations the stage holds at the same time if every rank runs
/// `micro_batches` micro-batches, counted along the order of the stage's passes. A schedule that holds a bounded number
/// reaches it within 2 x stages micro-batches, so that no more are counted. Not all stages are counted: between stages
/// whose counts are on one line, all counts are taken to be on it, which is tested for every schedule. O(log stages)
/// times the passes of a stage for min(micro_batches, 2 x stages) micro-batches.
[[nodiscard]] std::vector<std::int64_t> most_chunks_in_flight(const Schedule& schedule, std::int64_t micro_batches);
/// Whether the number of micro-batches that a stage holds grows without bound with the number that a rank runs.
[[nodiscard]] bool holds_all_micro_batches(const Schedule& schedule);

}  // namespace hdpsim
