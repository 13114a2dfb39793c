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

MemoryUse memory_use(const Plan& plan, const Transformer& model, const Mesh& mesh, const ChannelMemory& channels) {
  const std::int64_t parameters = parameters_per_device(model, mesh.tp);
  const std::int64_t shard = (parameters + mesh.hdp - 1) / mesh.hdp;
  const Bytes states(parameters * (weight_bytes + gradient_bytes) + shard * optimizer_bytes);

  MemoryUse most{states, Bytes{}};
  if (channels.per_connection) most.connections = *channels.per_connection * channels.connections->most_connections();
  for (const MicroBatch& micro_batch : plan.micro_batches) {
    const Bytes activations = activation_bytes(model, micro_batch.tokens_per_rank(), mesh.tp) * model.layers;
    const Bytes resident = activations.scaled(resident_share(micro_batch.offload, model.layers));
    const Bytes talking = channels.per_connection ? most_channels(micro_batch, channels) : Bytes{};
    most.device = std::max(most.device, states + resident + talking);
    most.host = std::max(most.host, activations - resident);
  }
  return most;
}

namespace {

// What one worker keeps while it goes through its passes.
class WorkerMemory {
 public:
  WorkerMemory(const Program& program, WorkerId worker) : program_(program), pipeline_(program.pipeline()) {
    for (const PassId id : pipeline_.schedule()[worker.index()]) run(id);
  }

  [[nodiscard]] Bytes device() const { return most_device_; }
  [[nodiscard]] Bytes host() const { return most_host_; }

 private:
  void run(PassId id) {
    const StagePass pass = pipeline_.pass(id);
    if (pass.kind == PassKind::input_gradient) return;  // weight gradients need the rest
    const LoweringOptions& options = program_.options();
    const MicroBatch& micro_batch = pipeline_.micro_batch(id);
    const std::int64_t layers = layers_of_chunk(options.model.layers, pipeline_.chunks(), pass.chunk).count;
    const std::int64_t tokens = micro_batch.tokens_per_rank();
    const Bytes activations = activation_bytes(options.model, tokens, options.mesh.tp) * layers;
    const Bytes resident = activations.scaled(resident_share(micro_batch.offload, layers));
    if (pass.kind == PassKind::forward) {
      device_ += resident;
      host_ += activations - resident;
      most_device_ = std::max(most_device_, device_);
      most_host_ = std::max(most_host_, host_);
    } else {
      device_ = device_ - resident;
      host_ = host_ - (activations - resident);
    }
  }

  const Program& program_;
  const Pipeline& pipeline_;
  Bytes device_;
  Bytes host_;
  Bytes most_device_;
  Bytes most_host_;
};

}  // namespace

MemoryUse memory_use(const Program& program, const ChannelMemory& channels) {
  const LoweringOptions& options = program.options();
  const Pipeline& pipeline = program.pipeline();
  if (pipeline.stages() == 1) return memory_use(program.plan(), options.model, options.mesh, channels);
  const std::int64_t hdp = options.mesh.hdp;
  MemoryUse most{};
  if (channels.per_connection) most.connections = *channels.per_connection * channels.connections->most_connections();
  for (std::size_t w = 0; w < pipeline.workers(); ++w) {
    const WorkerId worker(w);
    const std::int64_t parameters =
        parameters_of_stage(options.model, options.mesh, options.pipeline, pipeline.stage_of(worker));
    const Bytes states(parameters * (weight_bytes + gradient_bytes) + (parameters + hdp - 1) / hdp * optimizer_bytes);
    const std::int64_t talks =
        channels.per_connection ? channels.connections->connections(pipeline.rank_of(worker)) : 0;
    const Bytes talking = channels.per_connection ? *channels.per_connection * talks : Bytes{};
    const WorkerMemory memory(program, worker);
    most.device = std::max(most.device, states + memory.device() + talking);
    most.host = std::max(most.host, memory.host());
  }
  return most;
}

}  // namespace hdpsim
