#include "tests/unit/plan/plan_cases.h"

namespace hdpsim {

TEST_CASE("an empty batch is an empty plan with a list for every rank", "[plan]") {
  for (const std::string& policy : policy_names()) {
    const Plan plan = plan_of(policy, small_pool(), {});
    CHECK(plan.micro_batches.empty());
    CHECK(plan.schedule.size() == 8);
  }
}

}  // namespace hdpsim
