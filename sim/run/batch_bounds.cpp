#include "sim/run/batch_bounds.h"

#include <algorithm>
#include <numeric>

namespace hdpsim {
namespace {

StepBounds bounds_with(std::int64_t capacity, const StudyPoint& point, const Batch& batch) {
  const Mesh& mesh = point.spec.mesh;
  return step_bounds(batch, {.ranks = mesh.hdp, .capacity = capacity, .stages = mesh.pp}, point.work);
}

}  // namespace

StepBounds batch_bounds(const StudyPoint& point, const Batch& batch) {
  return bounds_with(point.spec.capacity, point, batch);
}

Duration bound_beside(const Plan& plan, const StudyPoint& point, const Batch& batch,
                      const std::vector<double>& speeds) {
  const bool offloads = std::any_of(plan.micro_batches.begin(), plan.micro_batches.end(),
                                    [](const MicroBatch& micro_batch) { return micro_batch.offloads(); });
  const std::int64_t held = std::max(point.spec.capacity, plan.capacity);  // a plan from a file may exceed it
  const std::int64_t capacity = offloads ? std::max(held, batch.tokens()) : held;
  const StepBounds bounds = bounds_that_hold(bounds_with(capacity, point, batch), plan);
  const double sum = std::accumulate(speeds.begin(), speeds.end(), 0.0);
  const double mean = std::max(1.0, sum / static_cast<double>(speeds.size()));
  const double fastest = std::max(1.0, *std::max_element(speeds.begin(), speeds.end()));
  return Duration::seconds(
      std::max(std::max({bounds.area, bounds.memory, bounds.capacity}) / mean, bounds.longest / fastest));
}

}  // namespace hdpsim
