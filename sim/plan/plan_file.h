#pragma once

#include <optional>
#include <string>

#include "sim/base/diagnostic.h"
#include "sim/plan/plan.h"

namespace hdpsim {

/// The schema of plan files.
inline constexpr char plan_schema[] = "hdpsim.plan/1";

/// A plan as JSON that a person can read and diff: one line per micro-batch, one line per rank's schedule.
///   {"schema": "hdpsim.plan/1", "policy": "hdp-balance", "step": 0, "ranks": 8, "capacity": 8192, "layers": 32,
///    "sequences": [20000, 5000, 3000],
///    "micro_batches": [
///      {"group": "0-2", "spans": [0], "offload": 0.25},
///      {"group": "3", "spans": [1, [2, 0, 3000]]}],
///    "schedule": [[0], [0], [0], [1], [], [], [], []]}
/// `group`: ranks in ring order, runs of consecutive ones as first-last. `spans`: the index of a whole sequence, or
/// [sequence, begin, tokens]. `local`: what ranks of the group hold alone, as [{"rank": 4, "spans": [3]}]; left out
/// where there is nothing. `moved`, with `cut` served alone: queries whose attention another rank of the group
/// computes, as [[index in `spans`, begin, tokens, rank]]; left out where there is nothing. `cut` per_document,
/// `offload` 0, `token_wise`, `continues` and `repeats_forward` false, `padding` 0 and `expert_ranks` 1 are left out.
[[nodiscard]] std::string plan_text(const Plan& plan);

/// Reads a plan; the text of plan_text() gives an equal one. Every error is reported with line and column: syntax,
/// unknown or missing keys, wrong types, ratios out of range, sequences, ranks and micro-batches that do not exist. The
/// result is then empty. Whether the plan is sound is for report_unsound() to say. `file` is the name in positions.
[[nodiscard]] std::optional<Plan> read_plan(const std::string& file, const std::string& text, Diagnostics& diagnostics);

}  // namespace hdpsim
