#include <algorithm>
#include <vector>

#include "sim/engine/work_probes.h"
#include "sim/model/parameters.h"
#include "sim/plan/plan_time.h"
#include "sim/roundpipe/streamed_step.h"

namespace hdpsim {
namespace {

DeviceParameters held(std::int64_t count, std::int64_t weights) {
  return {.common = count, .experts = 0, .weights = weights};
}

// Bytes of parameters that are streamed. Adapters come beside the frozen ones, in elements.
double streamed_bytes(const LoweringOptions& job, const DeviceParameters& of, std::int64_t adapters) {
  const Recipe& recipe = job.recipe;
  const NumberType type = recipe.lora.is_on() ? recipe.lora.base : recipe.parameters;
  const Bytes whole = parameter_bytes(type, of.all(), of.weights, job.model.element_bytes);
  return static_cast<double>(whole.count() + adapters * job.model.element_bytes);
}

StreamedLayer bytes_of_layer(const LoweringOptions& job) {
  std::int64_t matrices = 0;
  for (const WeightMatrix& each : weight_matrices(job.model, 1, {})) matrices += each.parameters();
  const DeviceParameters of = held(layer_parameter_count(job.model), matrices);
  const std::int64_t trained = trained_parameters(job.model, {{1, 0}}, job.recipe, of, 1).all();
  return {.bytes = streamed_bytes(job, of, job.recipe.lora.is_on() ? trained : 0),
          .gradient_bytes = static_cast<double>(trained * job.model.element_bytes)};
}

// Of the embedding or the head, which adapters leave frozen.
StreamedLayer bytes_of_end(const LoweringOptions& job, std::int64_t parameters) {
  const std::int64_t trained = job.recipe.lora.is_on() ? 0 : parameters;
  return {.bytes = streamed_bytes(job, held(parameters, 0), 0),
          .gradient_bytes = static_cast<double>(trained * job.model.element_bytes)};
}

// With the embedding in front and the head behind.
std::vector<StreamedLayer> layers_with_bytes(const LoweringOptions& job) {
  std::vector<StreamedLayer> layers = {bytes_of_end(job, input_parameters(job.model))};
  layers.insert(layers.end(), static_cast<std::size_t>(job.model.layers), bytes_of_layer(job));
  layers.push_back(bytes_of_end(job, output_parameters(job.model, false)));
  return layers;
}

// Of the mean micro-batch, to which the work model is to fit best.
std::int64_t mean_tokens(const Plan& plan) {
  std::int64_t tokens = 0;
  for (const MicroBatch& each : plan.micro_batches) tokens += each.tokens();
  return std::max<std::int64_t>(1, tokens / std::ssize(plan.micro_batches));
}

// A device's seconds by micro-batch in a model of so many layers.
std::vector<PassSeconds> passes_of(LoweringOptions job, std::int64_t layers, const Plan& plan, const Machine& machine) {
  job.model.layers = layers;
  job.mesh.pp = 1;
  job.pipeline = {};
  return pass_seconds(plan, work_model_of(job, mean_tokens(plan), machine, 1));
}

PassSeconds mean_of(const std::vector<PassSeconds>& passes) {
  PassSeconds mean;
  for (const PassSeconds& each : passes) {
    mean.forward += each.forward / static_cast<double>(passes.size());
    mean.backward += each.backward / static_cast<double>(passes.size());
  }
  return mean;
}

}  // namespace

std::vector<StreamedLayer> untimed_layers(const LoweringOptions& job) {
  std::vector<StreamedLayer> layers = layers_with_bytes(job);
  for (StreamedLayer& each : layers) {
    each.forward = each.bytes;
    each.backward = 3 * each.bytes;
  }
  return layers;
}

StreamedTimes streamed_times(const LoweringOptions& job, const Plan& plan, const Machine& machine) {
  const std::vector<PassSeconds> of_one = passes_of(job, 1, plan, machine);
  const std::vector<PassSeconds> of_two = passes_of(job, 2, plan, machine);
  StreamedTimes times{.layers = layers_with_bytes(job), .micro_batches = {}};
  for (std::size_t i = 0; i < of_one.size(); ++i) {
    times.micro_batches.push_back(of_two[i].forward + of_two[i].backward - of_one[i].forward - of_one[i].backward);
  }
  const PassSeconds one = mean_of(of_one);
  const PassSeconds two = mean_of(of_two);
  const PassSeconds layer{std::max(0.0, two.forward - one.forward), std::max(0.0, two.backward - one.backward)};
  for (std::size_t i = 1; i + 1 < times.layers.size(); ++i) {
    times.layers[i].forward = layer.forward;
    times.layers[i].backward = layer.backward;
  }
  StreamedLayer& head = times.layers.back();
  head.forward = std::max(0.0, one.forward - layer.forward);
  head.backward = head.forward + std::max(0.0, one.backward - layer.backward);
  return times;
}

}  // namespace hdpsim
