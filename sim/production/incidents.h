#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/analysis/goodput.h"
#include "sim/cluster/cluster.h"
#include "sim/cluster/node_list.h"
#include "sim/study/production_options.h"

namespace hdpsim {

/// A device of the cluster that is slow for a while. Times in seconds from the beginning of the run.
struct SlowSpell {
  double from_s = 0;
  double to_s = 0;
  std::int64_t device = 0;
  std::int64_t node = 0;
  double slowdown = 1;
};

struct NodeFailure {
  double at_s = 0;
  std::int64_t node = 0;
};

/// What happens to the nodes of a job, whatever the job does: all plans of a study see the same.
struct Incidents {
  std::vector<SlowSpell> slow;        ///< By their beginning.
  std::vector<NodeFailure> failures;  ///< By their time.
};

/// More than these of one kind in a run are refused.
inline constexpr double most_incidents = 1e6;

/// Draws what happens within the time of a run, and within a restart after it: failures of nodes as `failures` says,
/// and slow spells of devices, both as Poisson processes, each from a stream of its own. InputError at `place` if there
/// would be more than most_incidents of one kind. O(incidents log incidents).
[[nodiscard]] Incidents draw_incidents(const ProductionOptions& production, const std::optional<FailureModel>& failures,
                                       const NodeList& nodes, const ClusterSpec& cluster, const Position& place = {});

}  // namespace hdpsim
