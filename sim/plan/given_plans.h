#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "sim/plan/plan.h"
#include "sim/plan/policy.h"
#include "sim/trace/sequence.h"

namespace hdpsim {

/// A plan that was made elsewhere, and the file that states it.
struct GivenPlan {
  std::string file;
  Plan plan;
};

/// The plans of a scheduler that is none of the policies, by their steps. Each is sound (check_plan), apart from its
/// capacity: what a rank holds is for the study to say.
struct GivenPlans {
  std::map<std::int64_t, GivenPlan> by_step;
  std::uint64_t fingerprint = 0;  ///< Hash of the texts of all files.
};

/// The first difference between the batch of a plan and a batch, in words; empty if they are the same. O(sequences).
[[nodiscard]] std::optional<std::string> difference_of_batches(const Plan& plan, const Batch& batch);

/// The policy that hands out given plans under a name; `stated` is the entry of `plans`. make_planner() reports, at the
/// file of the plan, all plans for another number of ranks, and those that offload for another number of layers or to a
/// host that the cluster lacks. The planner refuses a batch for which there is no plan, and another batch than that of
/// the plan.
[[nodiscard]] Policy given_policy(std::string name, std::shared_ptr<const GivenPlans> plans, Value stated);

}  // namespace hdpsim
