#include <algorithm>

#include "sim/analysis/memory_verdict.h"
#include "sim/model/optimizer_work.h"
#include "sim/model/parameters.h"
#include "sim/roundpipe/streamed_step.h"

namespace hdpsim {
namespace {

struct StageBytes {
  double weights = 0;
  double gradients = 0;
  [[nodiscard]] double all() const { return weights + gradients; }
};

StageBytes bytes_of(const StageLayers& stage, const std::vector<StreamedLayer>& layers, bool has_gradients) {
  StageBytes bytes;
  for (std::int64_t i = stage.first; i < stage.end(); ++i) {
    bytes.weights += layers[static_cast<std::size_t>(i)].bytes;
    if (has_gradients) bytes.gradients += layers[static_cast<std::size_t>(i)].gradient_bytes;
  }
  return bytes;
}

// Of two stages that are on a device together: one that it computes, and the next one.
StageBytes largest_pair(const StageCut& cut, const std::vector<StreamedLayer>& layers, std::int64_t gpus) {
  std::vector<StageBytes> stages;
  for (const StageLayers& each : cut.forward) stages.push_back(bytes_of(each, layers, false));
  stages.push_back(bytes_of(cut.fused, layers, true));
  for (const StageLayers& each : cut.backward) stages.push_back(bytes_of(each, layers, true));
  StageBytes largest;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const StageBytes& next = stages[(i + static_cast<std::size_t>(gpus)) % stages.size()];
    const StageBytes pair{stages[i].weights + next.weights, stages[i].gradients + next.gradients};
    if (pair.all() > largest.all()) largest = pair;
  }
  return largest;
}

// Besides weights and gradients, at the fullest moment of a stage's backward pass.
MemoryParts activations(const LoweringOptions& job, const StageLayers& stage, const MemoryLoad& load) {
  Recipe recipe = job.recipe;
  recipe.recompute = Recompute::none;  // a stage is computed again as a whole
  const std::int64_t last = job.model.layers + 1;
  const bool embedding = stage.first == 0;
  const bool head = stage.end() > last;
  const std::int64_t layers = stage.count - (embedding ? 1 : 0) - (head ? 1 : 0);
  DeviceShape shape{.embedding = embedding, .head = head};
  if (layers > 0) shape.layers = {{layers, 0}};
  MemoryParts parts = DeviceMemory(job.model, shape, recipe, expert_use(job.model, job.experts)).peak(load);
  for (const MemoryPart states : {MemoryPart::parameters, MemoryPart::gradients, MemoryPart::optimizer}) {
    parts[states] = {};
  }
  return parts;
}

}  // namespace

MemoryParts streamed_memory(const LoweringOptions& job, std::int64_t tokens, Bytes device, double pairs) {
  const std::vector<StreamedLayer> layers = untimed_layers(job);
  const StageCut cut = stage_cut(layers, job.mesh.pp, static_cast<double>(device.count()));
  const MemoryLoad load{.tokens = tokens, .pairs = pairs};
  MemoryParts fullest = activations(job, cut.fused, load);
  for (const StageLayers& each : cut.backward) {
    const MemoryParts parts = activations(job, each, load);
    if (parts.total() > fullest.total()) fullest = parts;
  }
  const StageBytes states = largest_pair(cut, layers, job.mesh.pp);
  fullest[MemoryPart::parameters] = Bytes(static_cast<std::int64_t>(states.weights));
  fullest[MemoryPart::gradients] = Bytes(static_cast<std::int64_t>(states.gradients));
  fullest[MemoryPart::fragmentation] = fullest.allocated().scaled(job.recipe.fragmentation);
  return fullest;
}

Bytes streamed_host_memory(const LoweringOptions& job, std::int64_t tokens) {
  const Transformer& model = job.model;
  double weights = 0;
  for (const StreamedLayer& each : untimed_layers(job)) weights += each.bytes;
  const DeviceParameters all{.common = parameter_count(model)};
  const std::int64_t trained = trained_parameters(model, layer_runs(model), job.recipe, all, 1).all();
  const Bytes gradients(trained * model.element_bytes);
  const Bytes kept(tokens * model.hidden * model.element_bytes * (model.layers + 1));
  const Bytes states = Bytes(static_cast<std::int64_t>(weights)) + optimizer_bytes(job.recipe, trained, 1);
  return (states + gradients + kept) / job.mesh.pp;
}

MemoryUse streamed_use(const LoweringOptions& job, const Plan& plan, Bytes device) {
  std::int64_t largest = 0;
  std::int64_t tokens = 0;
  double pairs = 0;
  for (const MicroBatch& each : plan.micro_batches) {
    largest = std::max(largest, each.tokens_per_rank());
    pairs = std::max(pairs, each.pairs_per_rank());
    tokens += each.tokens();
  }
  MemoryUse use;
  use.parts = streamed_memory(job, largest, device, pairs);
  use.device = use.parts.total();
  use.host = streamed_host_memory(job, tokens);
  return use;
}

RankMemory constant_memory(const MemoryUse& use, Duration step) {
  return {use.rank, {{Duration{}, use.device, use.host}, {step, use.device, use.host}}};
}

bool holds_streamed(const LoweringOptions& job, std::int64_t tokens, Bytes device) {
  const auto all = static_cast<double>(tokens);
  return with_largest_gaps(streamed_memory(job, tokens, device, all * all)) <= device;
}

}  // namespace hdpsim
