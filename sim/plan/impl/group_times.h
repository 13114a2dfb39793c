#pragma once

#include <cstdint>
#include <functional>

#include "sim/plan/work_model.h"

namespace hdpsim {

/// What FlexSP (Wang et al. 2025, arXiv 2412.01523, section 3.2) and Hydraulis take a group to cost: fixed seconds, and
/// more for each of its sequences, whichever the others are.
struct GroupTimes {
  std::function<double(std::int64_t degree)> fixed;
  std::function<double(std::int64_t tokens, std::int64_t degree)> of_sequence;
};

/// The work model as such a sum: what depends on a group's tokens is split among its sequences, and where a sequence's
/// transfers take longer than its attention, the difference is its own. The least time of a micro-batch is left out.
/// Groups share a node if they are no larger than one.
[[nodiscard]] GroupTimes group_times(const WorkModel& work, std::int64_t ranks_per_node);

}  // namespace hdpsim
