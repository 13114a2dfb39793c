#pragma once

#include <memory>

#include "sim/plan/planner.h"

namespace hdpsim::test {

/// The planner of an entry of a study's `plans`; null, with every problem reported, if it is wrong or does not fit.
inline std::unique_ptr<Planner> planner_of(const Value& entry, const PlanningContext& context,
                                           Diagnostics& diagnostics) {
  const std::optional<Policy> policy = read_policy(entry, diagnostics);
  return policy ? make_planner(*policy, context, diagnostics) : nullptr;
}

}  // namespace hdpsim::test
