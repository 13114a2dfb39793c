#include "sim/report/memory.h"

#include <algorithm>

#include "sim/model/work.h"

namespace hdpsim {

MemoryUse memory_use(const Plan& plan, const Transformer& model, const Mesh& mesh) {
  const std::int64_t parameters = parameters_per_device(model, mesh.tp);
  const std::int64_t shard = (parameters + mesh.hdp - 1) / mesh.hdp;
  const Bytes states(parameters * (weight_bytes + gradient_bytes) + shard * optimizer_bytes);

  MemoryUse most{states, Bytes{}};
  for (const MicroBatch& micro_batch : plan.micro_batches) {
    const Bytes activations = activation_bytes(model, micro_batch.tokens_per_rank(), mesh.tp) * model.layers;
    const Bytes resident = activations.scaled(resident_share(micro_batch.offload, model.layers));
    most.device = std::max(most.device, states + resident);
    most.host = std::max(most.host, activations - resident);
  }
  return most;
}

}  // namespace hdpsim
