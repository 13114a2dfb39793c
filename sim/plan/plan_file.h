#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/base/diagnostic.h"
#include "sim/base/quantity_limits.h"
#include "sim/plan/plan.h"

namespace hdpsim {

/// The schema of plan files.
inline constexpr char plan_schema[] = "hdpsim.plan/1";

// What files of plans, and outputs of other schedulers, may state at most.
inline constexpr double most_tokens_of_plans = limits::most_tokens_of_sequence;
inline constexpr double most_layers_of_plans = 1e5;
inline constexpr double most_steps_of_plans = 1e15;
/// Ranks of all groups together: a short text can name a million of them.
inline constexpr std::int64_t most_members_of_groups = std::int64_t{1} << 25;

/// A plan as JSON that a person can read and diff: one line per micro-batch, one line per rank's schedule.
///   {"schema": "hdpsim.plan/1", "policy": "hdp-balance", "step": 0, "ranks": 8, "capacity": 8192, "layers": 32,
///    "sequences": [20000, 5000, 3000],
///    "micro_batches": [
///      {"group": "0-2", "spans": [0], "offload": 0.25},
///      {"group": "3", "spans": [1, [2, 0, 3000]]}],
///    "schedule": [[0], [0], [0], [1], [], [], [], []]}
/// `group`: ranks in ring order, runs of consecutive ones as first-last. `spans`: the index of a whole sequence, or
/// [sequence, begin, tokens]. `local`: what ranks of the group hold alone, as [{"rank": 4, "spans": [3]}]; omitted
/// where there is nothing. `moved`, with `cut` served alone: queries whose attention another rank of the group
/// computes, as [[index in `spans`, begin, tokens, rank]]; omitted where there is nothing. `cut` per_document,
/// `offload` 0, `token_wise`, `continues` and `repeats_forward` false, `padded` false,
/// `padding` 0, `update` 0 (the optimizer step, of several in one batch) and `expert_ranks` 1 are omitted.
[[nodiscard]] std::string plan_text(const Plan& plan);

/// Reads a plan; the text of plan_text() gives an equal one. Every error is reported with line and column: syntax,
/// unknown or missing keys, wrong types, ratios out of range, sequences, ranks and micro-batches that do not exist. The
/// result is then empty. Whether the plan is sound is for report_unsound() to say. `file` is the name in positions.
[[nodiscard]] std::optional<Plan> read_plan(const std::string& file, const std::string& text, Diagnostics& diagnostics);

/// Reports what plan_problems() finds in a plan that read_plan() has read, each problem at its entry of the file: a
/// sequence, a micro-batch or the schedule of a rank. The first 20 are reported, the others are counted. Reads the text
/// once more where there are problems.
void report_unsound(const Plan& plan, const std::string& file, const std::string& text, Diagnostics& diagnostics);

/// The plan of a file, if neither read_plan() nor report_unsound() has found a problem. A missing file is reported; one
/// that exists but cannot be read throws MachineError.
[[nodiscard]] std::optional<Plan> load_sound_plan(const std::string& path, Diagnostics& diagnostics);

}  // namespace hdpsim
