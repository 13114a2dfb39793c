#include "sim/study/device_room.h"

namespace hdpsim {

PlanMemory memory_of(const Pipeline& pipeline, const LoweringOptions& job, const ChannelMemory& channels) {
  return {pipeline,
          {.model = job.model,
           .mesh = job.mesh,
           .recipe = job.recipe,
           .experts = expert_use(job.model, job.experts),
           .channels = channels}};
}

bool fits(const Plan& plan, const LoweringOptions& job, const DeviceRoom& room) {
  const ConnectionTable connections = connections_of(plan, room.communicators);
  const Pipeline pipeline(plan, job.mesh.pp, job.pipeline);
  return memory_of(pipeline, job, {&connections, room.per_connection}).use().device <= room.memory;
}

}  // namespace hdpsim
