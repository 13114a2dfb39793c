#include "sim/run/impl/way_steps.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/units.h"
#include "sim/engine/cut_planner.h"
#include "sim/plan/plan_check.h"
#include "sim/run/step.h"

namespace hdpsim {
namespace {

void uncut_plan(Plan& plan) {
  for (MicroBatch& micro_batch : plan.micro_batches) micro_batch.cut = TokenCut::per_document;
}

/// Lends a batch and its plan to a step of a point.
class LentStep {
 public:
  LentStep(const StudyPoint& point, Batch& batch, Plan& plan)
      : batch_(batch), plan_(plan), step_{point, std::move(batch), std::move(plan)} {}
  ~LentStep() {
    uncut_plan(step_.plan);
    batch_ = std::move(step_.batch);
    plan_ = std::move(step_.plan);
  }
  LentStep(const LentStep&) = delete;
  LentStep& operator=(const LentStep&) = delete;

  /// Cut as the point says.
  [[nodiscard]] const PointStep& cut() {
    const PointSpec& spec = step_.point.spec;
    if (spec.cut != TokenCut::per_document) {
      cut_plan(step_.plan, spec.cut, step_.point.lowering(), *make_cost_model(*spec.profile));
    }
    return step_;
  }

 private:
  Batch& batch_;
  Plan& plan_;
  PointStep step_;
};

// All groups of a static mesh are alike.
std::int64_t degree_of(const Plan& plan) {
  return plan.micro_batches.empty() ? 1 : std::ssize(plan.micro_batches.front().group);
}

// Waves of expert groups are formed by costs, which depend on the way.
bool depends_on_way(const StudyPoint& point) {
  return point.spec.mesh.ep > 1;
}

}  // namespace

std::optional<std::vector<StepResult>> WaySteps::simulate(const StudyPoint& point, std::int64_t cp,
                                                          const std::function<bool()>& stop) {
  std::vector<StepResult> results;
  for (std::int64_t step = 0; step < steps_; ++step) {
    if (stop()) return std::nullopt;
    results.push_back(simulate_step(point, cp, step));
  }
  if (point.spec.loading) (void)add_data_waits(*point.spec.loading, results);
  return results;
}

StepResult WaySteps::simulate_step(const StudyPoint& point, std::int64_t cp, std::int64_t step) {
  if (depends_on_way(point)) return hdpsim::simulate_step(point, 0, step, world(point)).result;
  try {
    Plan& plan = uncut(point, cp, step);
    LentStep lent(point, batch(point, step), plan);
    return hdpsim::simulate_step(lent.cut(), world(point)).result;
  } catch (const QuantityOverflow& overflow) {
    point.outsize.fail(fmt::format("step {}", step), overflow.what());
  }
}

std::int64_t WaySteps::degree(const StudyPoint& point, std::int64_t cp) {
  if (depends_on_way(point)) return degree_of(make_plan(point, 0, 0, batch(point, 0)));
  return degree_of(uncut(point, cp, 0));
}

Plan& WaySteps::uncut(const StudyPoint& point, std::int64_t cp, std::int64_t step) {
  const std::int64_t capacity = point.spec.capacity;
  auto found = std::find_if(uncut_.begin(), uncut_.end(),
                            [&](const Uncut& each) { return each.cp == cp && each.capacity == capacity; });
  if (found == uncut_.end()) {
    if (uncut_.size() == kept_degrees) uncut_.erase(uncut_.begin());
    uncut_.push_back({cp, capacity, std::vector<std::optional<Plan>>(static_cast<std::size_t>(steps_))});
  } else {
    std::rotate(found, found + 1, uncut_.end());
  }
  std::optional<Plan>& plan = uncut_.back().plans.at(static_cast<std::size_t>(step));
  if (!plan) {
    plan = point.planned(0, step, batch(point, step)).plan;
    require_sound(*plan);
    uncut_plan(*plan);
  }
  return *plan;
}

Batch& WaySteps::batch(const StudyPoint& point, std::int64_t step) {
  batches_.resize(static_cast<std::size_t>(steps_));
  std::optional<Batch>& batch = batches_.at(static_cast<std::size_t>(step));
  if (!batch) batch = point.batches_of(0).step(step);
  return *batch;
}

// Ways of one mesh use one cluster: nothing of it depends on how ranks share a sequence.
World& WaySteps::world(const StudyPoint& point) {
  if (world_ == nullptr) world_ = point.make_world();
  return *world_;
}

}  // namespace hdpsim
