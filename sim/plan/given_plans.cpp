#include "sim/plan/given_plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "sim/plan/impl/policies.h"

namespace hdpsim {
namespace {

std::string name_of_file(const GivenPlan& given) {
  return std::filesystem::path(given.file).filename().string();
}

class GivenPlanner final : public Planner {
 public:
  GivenPlanner(std::string name, std::shared_ptr<const GivenPlans> plans, const PlanningContext& context,
               Position position)
      : name_(std::move(name)),
        plans_(std::move(plans)),
        capacity_(context.capacity),
        layers_(context.layers),
        position_(std::move(position)) {}

  [[nodiscard]] Plan plan(const Batch& batch, std::int64_t step) const override {
    const GivenPlan& given = plan_of(step);
    if (const auto difference = difference_of_batches(given.plan, batch)) {
      throw InputError(position_, fmt::format("{} plans another batch than that of step {}: {}", name_of_file(given),
                                              step, *difference));
    }
    Plan plan = given.plan;
    plan.policy = name_;
    plan.capacity = capacity_;
    plan.layers = layers_;
    raise_capacity(plan);
    return plan;
  }

 private:
  [[nodiscard]] const GivenPlan& plan_of(std::int64_t step) const {
    const auto found = plans_->by_step.find(step);
    if (found != plans_->by_step.end()) return found->second;
    throw InputError(position_, fmt::format("'{}' has no plan for step {}", name_, step),
                     "give a file for every step of the study");
  }

  std::string name_;
  std::shared_ptr<const GivenPlans> plans_;
  std::int64_t capacity_;
  std::int64_t layers_;
  Position position_;
};

/// Holds plans to the pool that is to run them.
class GivenOptions final : public PolicyOptions {
 public:
  GivenOptions(std::string name, std::shared_ptr<const GivenPlans> plans)
      : name_(std::move(name)), plans_(std::move(plans)) {}

  [[nodiscard]] std::unique_ptr<Planner> planner(PoolFit& pool) const override {
    for (const auto& [step, given] : plans_->by_step) check(given, pool);
    return std::make_unique<GivenPlanner>(name_, plans_, pool.context(), pool.position());
  }

 private:
  static void check(const GivenPlan& given, PoolFit& pool) {
    const PlanningContext& context = pool.context();
    const Plan& plan = given.plan;
    const Value file = Value::scalar(given.file, {given.file, 0, 0});
    if (plan.ranks != context.ranks) {
      pool.error(file, fmt::format("the plan is for {} HDP ranks, the study has {}", plan.ranks, context.ranks),
                 "make the plan for the study's mesh and cluster");
    }
    if (plan.expert_ranks != 1 && plan.expert_ranks != context.expert_ranks) {
      pool.error(file,
                 fmt::format("the plan is for expert groups of {} ranks, those of the study have {}", plan.expert_ranks,
                             context.expert_ranks),
                 "leave 'expert_ranks' out of the plan: its waves then follow from the study");
    }
    if (has_chunks_in_order(plan)) pool.require_chunks_in_order(file);
    check_offload(plan, file, pool);
  }

  // The layers of a plan say what a ratio is a share of.
  static void check_offload(const Plan& plan, const Value& file, PoolFit& pool) {
    const PlanningContext& context = pool.context();
    const auto first = std::find_if(plan.micro_batches.begin(), plan.micro_batches.end(),
                                    [](const MicroBatch& micro_batch) { return micro_batch.offloads(); });
    if (first == plan.micro_batches.end()) return;
    const auto id = first - plan.micro_batches.begin();
    if (plan.layers != context.layers) {
      pool.error(file,
                 fmt::format("micro-batch {} offloads a share of {} layers, a pass of the study has {}", id,
                             plan.layers, context.layers),
                 "make the plan for the study's model and mesh");
    }
    if (context.host_tokens.value_or(0) == 0 || context.work.offload_per_token == 0) {
      pool.error(file, fmt::format("micro-batch {} offloads, but the cluster has no host memory to copy to", id),
                 "give the nodes host memory, or plan without offload");
    }
    const bool splits_tokens = std::any_of(first, plan.micro_batches.end(),
                                           [](const MicroBatch& micro_batch) { return micro_batch.token_wise; });
    if (splits_tokens && !context.work.again_per_token) {
      pool.error(file, "a micro-batch is 'token_wise', but layers with experts are not computed again token by token",
                 "state a ratio alone");
    }
  }

  std::string name_;
  std::shared_ptr<const GivenPlans> plans_;
};

}  // namespace

std::optional<std::string> difference_of_batches(const Plan& plan, const Batch& batch) {
  const auto& planned = plan.sequence_tokens;
  const std::size_t both = std::min(planned.size(), batch.sequences.size());
  for (std::size_t i = 0; i < both; ++i) {
    if (planned[i] == batch.sequences[i].tokens) continue;
    return fmt::format("sequence {} has {} tokens in the plan and {} in the batch", i, planned[i],
                       batch.sequences[i].tokens);
  }
  if (planned.size() == batch.sequences.size()) return std::nullopt;
  return fmt::format("the plan has {} sequences, the batch {}", planned.size(), batch.sequences.size());
}

Policy given_policy(std::string name, std::shared_ptr<const GivenPlans> plans, Value stated) {
  auto options = std::make_shared<const GivenOptions>(name, std::move(plans));
  return {std::move(name), std::move(options), std::move(stated)};
}

}  // namespace hdpsim
