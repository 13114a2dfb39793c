#include "sim/study/point_memory.h"

namespace hdpsim {

PlanMemory memory_of(const Pipeline& pipeline, const PointSpec& point, const ConnectionTable& connections) {
  const auto& costs = point.profile->connections;
  return {pipeline,
          {.model = point.model,
           .mesh = point.mesh,
           .recipe = recipe_of(point),
           .experts = expert_use_of(point),
           .channels = {&connections, costs ? costs->memory_per_peer : std::nullopt}}};
}

bool fits(const Plan& plan, const PointSpec& point) {
  const ConnectionTable connections = connections_of(plan, point.connections.communicators);
  const Pipeline pipeline(plan, point.mesh.pp, point.pipeline);
  return memory_of(pipeline, point, connections).use().device <= point.cluster.least_device_memory();
}

}  // namespace hdpsim
