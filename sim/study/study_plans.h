#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/document/document.h"
#include "sim/document/key.h"
#include "sim/plan/given_plans.h"
#include "sim/plan/policy.h"
#include "sim/trace/batch_source.h"

namespace hdpsim {

/// One policy of a study with its options, or plans that files state.
struct StudyPlan {
  /// The policy, with its options if a policy occurs twice: `static {cp: 8}`. Plans of files have a name of their own.
  std::string name;
  Value entry;
  std::optional<Policy> policy;             ///< Empty if the entry is wrong, which is reported.
  std::shared_ptr<const GivenPlans> given;  ///< The plans of files; null: the policy makes them.

  /// A text of all that its plans depend on besides the point: the entry, or what the files hold, wherever they are.
  [[nodiscard]] std::string identity() const;
};

/// An entry of `plans`, a policy, with an option set.
[[nodiscard]] Value with_option(const Value& plan, std::string_view option, Value value);

/// Reads `plans`, a list of policies and of entries that name files. Every problem is reported; a plan that is wrong
/// has no policy.
[[nodiscard]] std::vector<StudyPlan> read_study_plans(const Value& plans, Diagnostics& diagnostics);

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
