#include "sim/run/batch_bounds.h"

#include <algorithm>

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

Duration bound_beside(const Plan& plan, const StudyPoint& point, const Batch& batch) {
  const bool offloads = std::any_of(plan.micro_batches.begin(), plan.micro_batches.end(),
                                    [](const MicroBatch& micro_batch) { return micro_batch.offloads(); });
  const std::int64_t capacity = offloads ? std::max(point.spec.capacity, batch.tokens()) : point.spec.capacity;
  return Duration::seconds(bounds_with(capacity, point, batch).busy());
}

}  // namespace hdpsim
