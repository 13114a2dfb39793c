#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/document/document.h"
#include "sim/plan/given_plans.h"
#include "sim/plan/policy.h"

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

}  // namespace hdpsim
