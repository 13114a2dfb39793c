#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/analysis/critical_path.h"
#include "sim/analysis/distance_to_bound.h"
#include "sim/analysis/step_result.h"

namespace hdpsim {

/// The same plan simulated with one change.
struct WhatIf {
  std::string change;  ///< "attention twice as fast".
  Duration step_time;
  bool is_bound = false;  ///< A bound that was not simulated: no plan can gain more from this change.
};

/// A pass of the critical path in words.
struct ExplainedPass {
  std::int64_t micro_batch = 0;
  std::string kind;  ///< "forward on stage 2" in a pipeline.
  std::int64_t ranks = 0;
  std::int64_t first_rank = 0;   ///< The first rank of the ring.
  std::int64_t last_rank = 0;    ///< The rank that was ready last.
  bool last_is_outside = false;  ///< Whether last_rank belongs to another group of the same wave.
  std::int64_t spans = 0;
  std::int64_t tokens = 0;
  std::int64_t sequence = 0;         ///< The sequence of the longest span.
  std::int64_t sequence_tokens = 0;  ///< Length of that whole sequence.
  Duration time;                     ///< Time on the path.
  Duration waiting;  ///< The part of `time` spent waiting for messages, copies or the pool's collectives.
};

/// Changes of a study that its user could make together, and what its plan, made anew, then takes.
struct Advice {
  std::vector<std::string> changes{};  ///< Keys with their values, as after --set: "mesh.tp=4".
  std::vector<std::string> remarks{};  ///< What they amount to, where keys do not say it: "node 1 out of service".
  Duration step_time{};
  std::int64_t tokens = 0;  ///< Of that step.
  double pace = 0;          ///< Seconds of a token.
  /// The share of the time of a token that they save; empty where the plan cannot run without them.
  std::optional<double> gain{};
  Bytes device{};  ///< What the fullest device then needs.
};

/// Why a step of a plan takes as long as it does.
struct Explanation {
  std::string plan;
  std::int64_t step = 0;
  Duration step_time;
  std::string excess;  ///< memory_excess() of its run: a step of a plan that does not fit cannot run.
  std::string risk{};  ///< risk_text() of its run.
  std::string sure{};  ///< confidence_sentence() of its run; may be empty.
  Breakdown mean;      ///< Mean over ranks.
  BusyTimes busy;
  std::int64_t busiest_rank = 0;
  Breakdown path;  ///< The time of the critical path, without the end of the step.
  Duration ending;
  std::int64_t path_passes = 0;
  DistanceToBound distance{};
  std::vector<ExplainedPass> longest;  ///< Passes of the path, the longest first.
  std::optional<SlowHop> slow_hop;     ///< The slowest hop of the ring on the path that waits longest.
  std::string busiest_link;            ///< Name of the link that is busiest of all; empty if there is none.
  double busiest_link_share = 0;       ///< Its load relative to its rate, over the step.
  std::vector<WhatIf> changes;         ///< Changes that help, the most helpful first.
  std::string refusal{};               ///< refusal_text() of its run: there is then nothing else to report but advice.
  /// What its user could change, the best first; empty: nothing was tried.
  std::optional<std::vector<Advice>> advice{};
};

/// The explanation from the critical path alone, without changes.
[[nodiscard]] Explanation explanation_of(const Program& program, const Timeline& timeline, const Machine& machine);

}  // namespace hdpsim
