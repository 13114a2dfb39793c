#include "sim/report/estimates_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/document/json.h"
#include "sim/results/csv.h"

namespace hdpsim {
namespace {

double estimate_over_bound(const PlanEstimate& plan, const StepBounds& bounds) {
  return bounds.step() > 0 ? plan.step / bounds.step() : 1;
}

std::string table_of(const StepEstimates& estimates) {
  std::size_t width = 4;
  for (const PlanEstimate& plan : estimates.plans) width = std::max(width, plan.name.size());
  const StepBounds& bounds = estimates.bounds;
  std::string text = fmt::format("{:<{}}  micro-batches    step, s  over bound   idle\n", "plan", width);
  for (const PlanEstimate& plan : estimates.plans) {
    if (!plan.refusal.empty()) {
      text += fmt::format("{:<{}}  {}\n", plan.name, width, plan.refusal);
      continue;
    }
    text += fmt::format("{:<{}}  {:>13}  {:>9.4g}  {:>10.3f}  {:>4.0f}%\n", plan.name, width, plan.micro_batches,
                        plan.step, estimate_over_bound(plan, bounds), 100 * plan.idle);
  }
  return text +
         fmt::format(
             "\nBy these prices no plan of whole sequences without offload takes less than {:.4g} s ({}):\n"
             "area {:.4g} s, memory {:.4g} s, capacity {:.4g} s, longest sequence {:.4g} s, and {:.4g} s for the "
             "pipeline to fill.\n",
             bounds.step(), bounds.reason(), bounds.area, bounds.memory, bounds.capacity, bounds.longest, bounds.fill);
}

std::string csv_of_plans(const StepEstimates& estimates) {
  std::string text = "plan,micro_batches,step_s,over_bound,idle,refusal\n";
  for (const PlanEstimate& plan : estimates.plans) {
    const std::string figures = plan.refusal.empty()
                                    ? fmt::format("{},{},{},{}", plan.micro_batches, plan.step,
                                                  estimate_over_bound(plan, estimates.bounds), plan.idle)
                                    : ",,,";
    text += fmt::format("{},{},{}\n", csv_field(plan.name), figures, csv_field(plan.refusal));
  }
  return text;
}

Json json_of_plans(const StepEstimates& estimates) {
  const StepBounds& bounds = estimates.bounds;
  Json plans = Json::array();
  for (const PlanEstimate& plan : estimates.plans) {
    if (!plan.refusal.empty()) {
      plans.push_back({{"plan", plan.name}, {"refusal", plan.refusal}});
      continue;
    }
    plans.push_back({{"plan", plan.name},
                     {"micro_batches", plan.micro_batches},
                     {"step_s", plan.step},
                     {"over_bound", estimate_over_bound(plan, bounds)},
                     {"idle", plan.idle}});
  }
  return {{"plans", std::move(plans)},
          {"bound_s", bounds.step()},
          {"reason", bounds.reason()},
          {"bounds_s",
           {{"area", bounds.area},
            {"memory", bounds.memory},
            {"capacity", bounds.capacity},
            {"longest", bounds.longest},
            {"fill", bounds.fill}}}};
}

}  // namespace

std::string formatted(const StepEstimates& estimates, Format format) {
  switch (format) {
    case Format::table:
      return table_of(estimates);
    case Format::csv:
      return csv_of_plans(estimates);
    case Format::json:
      return json_page(json_of_plans(estimates));
  }
  return {};
}

}  // namespace hdpsim
