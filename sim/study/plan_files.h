#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "sim/document/key.h"
#include "sim/plan/given_plans.h"
#include "sim/trace/batch_source.h"

namespace hdpsim {

/// Whether an entry of `plans` names files with plans, `{file: plans/*.json, name: mine}`, and no policy.
[[nodiscard]] bool names_plan_files(const Value& entry);
/// The shape of such an entry.
[[nodiscard]] KeyShape plan_files_shape();
/// The name of its plans: what it states, the stem of its only file, or the folder of several. It may be empty if the
/// entry is wrong.
[[nodiscard]] std::string name_of_plan_files(const Value& entry);

/// Reads the files of an entry; paths are relative to the file that states them. `*` and `?` in the name of a file
/// stand for any characters and for one. Every problem is reported with its file, the first FirstProblems::most of
/// each: what is wrong with the entry, files that cannot be read, plans that are not sound (check_plan), two plans for
/// one step. Null if there is one.
[[nodiscard]] std::shared_ptr<const GivenPlans> read_plan_files(const Value& entry, Diagnostics& diagnostics);

/// Reports, unless there is exactly one plan for each of `steps` steps, which ones are missing or too many, and every
/// plan of a batch that is not the study's, with its first difference.
void check_plan_files(const GivenPlans& plans, const Position& entry, std::int64_t steps, const BatchSource& batches,
                      Diagnostics& diagnostics);

}  // namespace hdpsim
