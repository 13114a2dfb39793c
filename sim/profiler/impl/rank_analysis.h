#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/profiler/impl/rank_trace.h"
#include "sim/profiler/recording.h"

namespace hdpsim {

/// The times of the messages of one kind in one process group: one list for each trace that has them, in the order of
/// the trace.
using MessagesOfGroups = std::map<std::pair<TracedMessage, std::string>, std::vector<std::vector<float>>>;

/// Adds what one trace says to the recording; its messages also to `groups`. Sorts the kernels and calls of the trace.
void analyse(RankTrace& trace, const std::string& file, std::int64_t gpus_per_node, Recording& recording,
             MessagesOfGroups& groups);

/// Whether messages among these ranks ("[0, 1, 2, 3]", "[0, 1, ..., 31]") stay within a node. Empty: unknown.
[[nodiscard]] std::optional<LinkKind> link_among(const std::string& group_ranks, std::int64_t ranks,
                                                 std::int64_t gpus_per_node);

}  // namespace hdpsim
