#include "sim/study/point_memory.h"

namespace hdpsim {

PlanMemory memory_of(const Plan& plan, const PointSpec& point, const ConnectionTable& connections) {
  const auto& costs = point.profile->connections;
  return {plan,
          {.model = point.model,
           .mesh = point.mesh,
           .rules = memory_rules_of(point),
           .channels = {&connections, costs ? costs->memory_per_peer : std::nullopt},
           .pipeline = point.pipeline}};
}

bool fits(const Plan& plan, const PointSpec& point) {
  const ConnectionTable connections = connections_of(plan, point.connections.communicators);
  return memory_of(plan, point, connections).use().device <= point.cluster.least_device_memory();
}

}  // namespace hdpsim
