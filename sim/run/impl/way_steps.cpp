#include "sim/run/impl/way_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "sim/base/units.h"
#include "sim/engine/cut_planner.h"
#include "sim/run/ordered_work.h"

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

WaySteps::WaySteps(std::int64_t steps, std::size_t jobs)
    : jobs_(std::clamp<std::size_t>(jobs, 1, static_cast<std::size_t>(steps))),
      batches_(static_cast<std::size_t>(steps)),
      worlds_(jobs_) {}

std::optional<std::vector<KnownStep>> WaySteps::simulate(const StudyPoint& point, std::int64_t cp,
                                                         std::size_t memory_ranks, const std::function<bool()>& stop) {
  Uncut& uncut = uncut_of(point, cp);
  std::atomic<std::size_t> threads = 0;
  const auto make_worker = [&] {
    std::unique_ptr<World>& world = worlds_.at(threads++);
    // Ways of one mesh use one cluster: nothing of it depends on how ranks share a sequence.
    if (world == nullptr) world = point.make_world();
    return [&](std::int64_t step) {
      SimulatedStep made = simulated(point, uncut, step, *world, {.memory_ranks = memory_ranks});
      return KnownStep{std::move(made), world->take_coverage()};
    };
  };
  std::vector<KnownStep> steps;
  const auto take = [&](std::int64_t, KnownStep step) { steps.push_back(std::move(step)); };
  if (!run_in_order({0, std::ssize(batches_), jobs_, stop}, make_worker, take)) return std::nullopt;
  return steps;
}

std::int64_t WaySteps::degree(const StudyPoint& point, std::int64_t cp) {
  if (depends_on_way(point)) return degree_of(make_plan(point, 0, 0, batch_of(point, 0)));
  return degree_of(plan_of(point, uncut_of(point, cp), 0));
}

SimulatedStep WaySteps::simulated(const StudyPoint& point, Uncut& uncut, std::int64_t step, World& world,
                                  const StepRequest& wanted) {
  if (depends_on_way(point)) return simulate_step(point, 0, step, world, wanted);
  try {
    Plan& plan = plan_of(point, uncut, step);
    LentStep lent(point, batch_of(point, step), plan);
    return simulate_step(lent.cut(), world, wanted);
  } catch (const QuantityOverflow& overflow) {
    point.outsize.fail(fmt::format("step {}", step), overflow.what());
  }
}

WaySteps::Uncut& WaySteps::uncut_of(const StudyPoint& point, std::int64_t cp) {
  const std::int64_t capacity = point.spec.capacity;
  const auto found = std::find_if(uncut_.begin(), uncut_.end(),
                                  [&](const Uncut& each) { return each.cp == cp && each.capacity == capacity; });
  if (found != uncut_.end()) {
    std::rotate(found, found + 1, uncut_.end());
    return uncut_.back();
  }
  if (uncut_.size() == kept_degrees) uncut_.erase(uncut_.begin());
  return uncut_.emplace_back(Uncut{cp, capacity, std::vector<std::optional<Plan>>(batches_.size())});
}

// Each step is asked for by one thread.
Plan& WaySteps::plan_of(const StudyPoint& point, Uncut& uncut, std::int64_t step) {
  std::optional<Plan>& plan = uncut.plans.at(static_cast<std::size_t>(step));
  if (!plan) {
    plan = make_plan(point, 0, step, batch_of(point, step));
    uncut_plan(*plan);
  }
  return *plan;
}

Batch& WaySteps::batch_of(const StudyPoint& point, std::int64_t step) {
  std::optional<Batch>& batch = batches_.at(static_cast<std::size_t>(step));
  if (!batch) batch = point.batches_of(0).step(step);
  return *batch;
}

}  // namespace hdpsim
