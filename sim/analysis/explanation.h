#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/analysis/critical_path.h"
#include "sim/analysis/step_result.h"

namespace hdpsim {

/// The same plan in a world that differs in one thing.
struct WhatIf {
  std::string change;  ///< "attention twice as fast".
  Duration step_time;
  bool is_bound = false;  ///< Not simulated: no plan can do better by this.
};

/// A pass of the critical path in words.
struct ExplainedPass {
  std::int64_t micro_batch = 0;
  std::string kind;  ///< Of a pipeline: "forward on stage 2".
  std::int64_t ranks = 0;
  std::int64_t first_rank = 0;   ///< Of the ring.
  std::int64_t last_rank = 0;    ///< That came last.
  bool last_is_outside = false;  ///< Of another group of the same wave.
  std::int64_t spans = 0;
  std::int64_t tokens = 0;
  std::int64_t sequence = 0;         ///< Of the longest span.
  std::int64_t sequence_tokens = 0;  ///< Of that sequence in all.
  Duration time;                     ///< On the path.
  Duration waiting;                  ///< Of it: for messages or copies.
};

/// Why a step of a plan takes as long as it does.
struct Explanation {
  std::string plan;
  std::int64_t step = 0;
  Duration step_time;
  std::string excess;  ///< memory_excess() of its run: a step of a plan that does not fit cannot run.
  Breakdown mean;      ///< Over ranks.
  BusyTimes busy;
  std::int64_t busiest_rank = 0;
  Breakdown path;  ///< Where the time of the critical path goes, without the end of the step.
  Duration ending;
  std::int64_t path_passes = 0;
  std::vector<ExplainedPass> longest;  ///< Of the path, the longest first.
  std::optional<SlowHop> slow_hop;     ///< Of the ring on the path that waits longest.
  std::string busiest_link;            ///< Of all; empty if there is none.
  double busiest_link_share = 0;       ///< Of its rate, over the step.
  std::vector<WhatIf> changes;         ///< What helps most first; without those that do not help.
};

/// What the critical path says, without what if.
[[nodiscard]] Explanation explanation_of(const Program& program, const Timeline& timeline, const Machine& machine);

}  // namespace hdpsim
