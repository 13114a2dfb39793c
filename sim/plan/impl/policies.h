#pragma once

#include <vector>

#include "sim/plan/impl/policy_kind.h"

namespace hdpsim {

[[nodiscard]] PolicyKind static_policy();
[[nodiscard]] PolicyKind hdp_naive_policy();
[[nodiscard]] PolicyKind hdp_balance_policy();
[[nodiscard]] PolicyKind verl_policy();

/// All policies. Their names, options, schema, reference page and planners follow from this table.
[[nodiscard]] inline const std::vector<PolicyKind>& policies() {
  static const std::vector<PolicyKind> all = {static_policy(), hdp_naive_policy(), hdp_balance_policy(), verl_policy()};
  return all;
}

}  // namespace hdpsim
