#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/base/diagnostic.h"
#include "sim/base/quantity_limits.h"
#include "sim/plan/plan.h"
#include "sim/plan/plan_document.h"

namespace hdpsim {

/// The schema of plan files, ...
inline constexpr char plan_schema[] = "hdpsim.plan/2";
/// ... and the one before, which is read as well: it has none of the keys of which PlanDocument is more than a plan.
inline constexpr char first_plan_schema[] = "hdpsim.plan/1";

// What files of plans, and outputs of other schedulers, may state at most.
inline constexpr double most_tokens_of_plans = limits::most_tokens_of_sequence;
inline constexpr double most_layers_of_plans = 1e5;
inline constexpr double most_steps_of_plans = 1e15;
/// Ranks of all groups together: a short text can name a million of them.
inline constexpr std::int64_t most_members_of_groups = std::int64_t{1} << 25;

/// A plan as JSON that a person can read and diff: one line per micro-batch, one line per rank's schedule.
///   {"schema": "hdpsim.plan/2", "made_by": {"version": "0.1.0", "study": "tiny", "hash": "0123456789abcdef"},
///    "policy": "hdp-balance", "step": 0, "ranks": 8, "tp": 2, "capacity": 8192, "layers": 32, "model_layers": 32,
///    "exchange": "p2p", "waves": false,
///    "sequences": [20000, 5000, 3000],
///    "ids": ["a", 17, "c"],
///    "micro_batches": [
///      {"group": "0-2", "spans": [0], "offload": 0.25},
///      {"group": "3", "spans": [1, [2, 0, 3000]]}],
///    "schedule": [[0], [0], [0], [1], [], [], [], []]}
/// `group`: ranks in ring order, runs of consecutive ones as first-last. `spans`: the index of a whole sequence, or
/// [sequence, begin, tokens]. `local`: what ranks of the group hold alone, as [{"rank": 4, "spans": [3]}]; omitted
/// where there is nothing. `moved`, with `cut` served alone: queries whose attention another rank of the group
/// computes, as [[index in `spans`, begin, tokens, rank]]; omitted where there is nothing. `exchange` of a micro-batch
/// is stated where it is another way than the plan's. `cut` per_document, `offload` 0, `token_wise`,
/// `continues` and `repeats_forward` false, `padded` false, `padding` 0, `update` 0 (the optimizer step, of several in
/// one batch), `expert_ranks`, `tp` and `pp` 1, `placement` strided, and what is not known are omitted. `waves` is
/// runs_in_waves(). configs/studies/PLANS.md says all of it for those who write a runtime.
[[nodiscard]] std::string plan_text(const PlanDocument& document);
/// The same of a plan of which no more is known.
[[nodiscard]] std::string plan_text(const Plan& plan);

/// Reads a plan; the text of plan_text() gives an equal one. Every error is reported with line and column: syntax,
/// unknown or missing keys, wrong types, ratios out of range, sequences, ranks and micro-batches that do not exist, ids
/// that are there twice, and an `exchange` or `waves: true` that the rest contradicts. The result is then empty.
/// Whether the plan is sound is for report_unsound() to say. `file` is the name in positions.
[[nodiscard]] std::optional<PlanDocument> read_plan_document(const std::string& file, const std::string& text,
                                                             Diagnostics& diagnostics);
/// The plan alone.
[[nodiscard]] std::optional<Plan> read_plan(const std::string& file, const std::string& text, Diagnostics& diagnostics);

/// Reports what plan_problems() finds in a plan that read_plan() has read, each problem at its entry of the file: a
/// sequence, a micro-batch or the schedule of a rank. The first 20 are reported, the others are counted. Reads the text
/// once more where there are problems.
void report_unsound(const Plan& plan, const std::string& file, const std::string& text, Diagnostics& diagnostics);

/// The contents of a file, if neither read_plan_document() nor report_unsound() has found a problem. A missing file is
/// reported; one that exists but cannot be read throws MachineError.
[[nodiscard]] std::optional<PlanDocument> load_sound_document(const std::string& path, Diagnostics& diagnostics);
/// The plan alone.
[[nodiscard]] std::optional<Plan> load_sound_plan(const std::string& path, Diagnostics& diagnostics);

/// The same of a text that has been read.
[[nodiscard]] std::optional<PlanDocument> sound_document(const std::string& file, const std::string& text,
                                                         Diagnostics& diagnostics);

}  // namespace hdpsim
