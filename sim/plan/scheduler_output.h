#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/document/document.h"
#include "sim/plan/plan.h"
#include "sim/trace/sequence.h"

namespace hdpsim {

/// What is known of the steps of a scheduler besides what it prints. A text that states the same thing otherwise is
/// wrong.
struct SchedulerContext {
  std::string policy;                                  ///< The name of the plans.
  std::int64_t first_step = 0;                         ///< The number of the first step; the next ones follow it.
  std::optional<std::int64_t> ranks;                   ///< HDP ranks of the pool.
  std::optional<std::int64_t> capacity;                ///< Tokens that a rank holds per micro-batch.
  std::optional<std::int64_t> layers;                  ///< Layers of a pass; needed where a group offloads.
  std::function<Batch(std::int64_t step)> batch = {};  ///< The batches of a study; empty: the text states lengths.
  std::optional<std::int64_t> steps = {};              ///< How many there are, from 0 on.
  bool is_partial = false;  ///< Who runs the plans will know more: what is not known is no problem here.
};

/// The plans of a scheduler, in the order of the text.
struct SchedulerPlans {
  std::vector<Plan> plans;
  std::vector<std::string> unread;  ///< Other keys than those of a step, which say nothing about a plan.
  std::int64_t next_step = 0;       ///< The number behind that of the last step, also of one with problems.
};

/// Whether the name of a file says that it has a step a line: .jsonl, .ndjson.
[[nodiscard]] bool has_step_a_line(const std::string& path);
/// Whether a document, or the first line of lines, states a step of a scheduler.
[[nodiscard]] bool holds_scheduler_step(const Value& document);
/// The same for a file of lines, by its first line that is not blank. InputError if the file cannot be read by lines.
[[nodiscard]] bool holds_scheduler_steps(const std::string& path);

/// Turns what a scheduler prints, groups of ranks and the sequences that each group holds, into plans. `text` is one
/// step as JSON, or with `is_lines` one step a line:
///   {"lengths": [8000, 500, 700], "ranks": 4, "capacity": 4096, "micro_batches": [
///     {"ranks": [0, 1], "sequences": [0]},
///     {"size": 1, "sequences": [2, 1]}]}
/// `lengths` has the tokens of every sequence; a sequence is named by its place there, from 0. `ranks`, `capacity`,
/// `layers` and `step` are optional as far as `context` knows them. The work is stated in exactly one of three forms,
/// each in the order of execution:
///   micro_batches     groups with `ranks`, or with `size` and perhaps `first`; `offload` from 0 to 1 is optional.
///                     [first, size, [sequences]] and [size, [sequences]] are the same. Without ranks a group gets
///                     those that follow the group before it, or the first ones where too few are left. A list of
///                     groups in place of a group is a round: its groups run side by side, so that no rank is in two of
///                     them, and ranks are assigned from 0.
///   by_rank           for every rank, or for every run of ranks that share their sequences, a list of micro-batches,
///                     each a list of sequences; or one list of sequences.
///   sample_id_groups  Megatron-LM's: by micro-batch and rank, the sequences of which the rank holds a part. Ranks with
///                     the same sequences are a group.
/// Groups without sequences are skipped. Every problem is reported with line and column, sequences that are missing or
/// twice among them; the first FirstProblems::most of a kind one by one. The plans are sound (check_plan) apart from
/// their capacity, unless the context is partial. They are empty if there is a problem. `file` is the name in
/// positions.
[[nodiscard]] SchedulerPlans read_scheduler_output(const std::string& file, const std::string& text, bool is_lines,
                                                   const SchedulerContext& context, Diagnostics& diagnostics);

}  // namespace hdpsim
