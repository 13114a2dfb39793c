#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/document/key.h"

namespace hdpsim {

class PolicyOptions;

/// A policy with its options as stated. Whether they fit a pool and a context is checked when the planner is made
/// (make_planner).
struct Policy {
  std::string name;
  std::shared_ptr<const PolicyOptions> options;
  Value stated;  ///< The map of its options, empty for a bare word; it gives the positions of problems.
};

/// The names of all policies, in the order of sim/plan/impl/policies.h.
[[nodiscard]] const std::vector<std::string>& policy_names();
/// What the policy does, in a sentence; empty if there is none of that name.
[[nodiscard]] std::string_view policy_meaning(std::string_view name);
/// Every policy with the declarations of its options.
[[nodiscard]] const std::vector<std::pair<std::string, std::vector<KeyText>>>& policy_options();
/// True if the policy exists and has the option.
[[nodiscard]] bool has_option(std::string_view policy, std::string_view option);
/// The shape of an entry of `plans`.
[[nodiscard]] KeyShape plan_shape();

/// Reads an entry of `plans`: a bare word (`hdp-naive`) or a map of one policy to its options. All unknown policies,
/// unknown options and values that are valid for no pool are reported; the result is then empty.
[[nodiscard]] std::optional<Policy> read_policy(const Value& entry, Diagnostics& diagnostics);

}  // namespace hdpsim
