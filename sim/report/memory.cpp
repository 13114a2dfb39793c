#include "sim/report/memory.h"

#include <algorithm>

#include "sim/model/work.h"

namespace hdpsim {

namespace {

Bytes most_channels(const MicroBatch& micro_batch, const ChannelMemory& channels) {
  std::int64_t most = 0;
  for (const HdpRank rank : micro_batch.group) most = std::max(most, channels.connections->connections(rank));
  return *channels.per_connection * most;
}

}  // namespace

MemoryUse memory_use(const Plan& plan, const Transformer& model, const Mesh& mesh, const ChannelMemory& channels,
                     Recompute recompute) {
  const std::int64_t parameters = parameters_per_device(model, mesh.tp);
  const std::int64_t shard = (parameters + mesh.hdp - 1) / mesh.hdp;
  const Bytes states(parameters * (weight_bytes + gradient_bytes) + shard * optimizer_bytes);

  MemoryUse most{states, Bytes{}};
  if (channels.per_connection) most.connections = *channels.per_connection * channels.connections->most_connections();
  for (const MicroBatch& micro_batch : plan.micro_batches) {
    const std::int64_t tokens = micro_batch.tokens_per_rank();
    const Bytes kept = activation_bytes(model, tokens, mesh.tp, recompute);
    const Bytes again = activation_bytes(model, tokens, mesh.tp) - kept;
    const Bytes activations = kept * model.layers;
    const Bytes resident = activations.scaled(resident_share(micro_batch.offload, model.layers));
    const Bytes talking = channels.per_connection ? most_channels(micro_batch, channels) : Bytes{};
    most.device = std::max(most.device, states + resident + again + talking);
    most.host = std::max(most.host, activations - resident);
  }
  return most;
}

}  // namespace hdpsim
