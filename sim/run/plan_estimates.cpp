#include "sim/run/plan_estimates.h"

#include <numeric>
#include <vector>

#include "sim/plan/plan_time.h"
#include "sim/run/step.h"

namespace hdpsim {
namespace {

PlanEstimate estimate(const Plan& plan, const StudyPoint& point) {
  const std::vector<double> of_ranks = plan_time(plan, point.work).busy;
  const double step = point.estimate(plan);
  const double busy = std::accumulate(of_ranks.begin(), of_ranks.end(), 0.0) / static_cast<double>(plan.ranks);
  return {.name = {},
          .micro_batches = std::ssize(plan.micro_batches),
          .step = step,
          .idle = step > 0 ? 1 - busy / step : 0,
          .refusal = {}};
}

}  // namespace

StepEstimates estimate_plans(const Study& study, const StudyPoint& point, std::int64_t step) {
  StepEstimates all{{}, point.bounds(point.batches->step(step))};
  for (std::size_t i = 0; i < study.plans.size(); ++i) {
    PlanEstimate& made = all.plans.emplace_back();
    try {
      made = estimate(make_plan(point, i, step, point.batches_of(i).step(step)), point);
    } catch (const InputError& refused) {
      made.refusal = refused.diagnostics().sorted().front().message;
    }
    made.name = study.plans[i].name;
  }
  return all;
}

}  // namespace hdpsim
