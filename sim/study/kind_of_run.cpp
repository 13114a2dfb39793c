#include "sim/study/kind_of_run.h"

#include <algorithm>
#include <utility>

#include "sim/analysis/metrics.h"
#include "sim/model/layers.h"
#include "sim/program/streamed_schedule.h"

namespace hdpsim {
namespace {

// The text of a value below a section; empty if the study does not have it.
std::string text_at(const Value& study, std::string_view section, std::string_view key) {
  const Value* map = study.find(section);
  const Value* value = map == nullptr ? nullptr : map->find(key);
  return value == nullptr ? "" : value->text;
}

bool has_one_length(const Value& study) {
  const Value* data = study.find("data");
  const Value* lengths = data == nullptr ? nullptr : data->find("lengths");
  return lengths != nullptr && lengths->find("fixed") != nullptr;
}

// Whether a plan's entry, {policy: {offload: ...}}, says that activations go to host memory.
bool offloads(const Value& plan) {
  const Value* offload = plan.entries.size() == 1 ? plan.entries.front().value.find("offload") : nullptr;
  return offload != nullptr && offload->text != "none" && offload->text.find_first_not_of("0.") != std::string::npos;
}

bool uses_host_memory(const Value& study, const PointSpec& point) {
  const Value* plans = study.find("plans");
  const bool all_offload = plans != nullptr && !plans->items.empty() && std::ranges::all_of(plans->items, offloads);
  return all_offload || is_streamed(point.pipeline) || point.recipe.host.optimizer > 0 || point.recipe.host.parameters;
}

Workload workload_of(const Value& study, const PointSpec& point) {
  if (has_experts(point.model)) return Workload::experts;
  if (!has_one_length(study)) return Workload::mixed_lengths;
  if (uses_host_memory(study, point)) return Workload::host_memory;
  const bool graphs = text_at(study, "kernels", "launch") == "graphs";
  return !graphs && layer_seconds_at_peak(point) < host_bound_layer_s ? Workload::host_bound : Workload::dense;
}

}  // namespace

double layer_seconds_at_peak(const PointSpec& point) {
  const std::int64_t tokens = std::min(point.capacity, point.batch.context);
  Batch batch;
  batch.sequences.push_back({.tokens = tokens});
  const double of_token = model_flops(point.model, batch).count() / static_cast<double>(tokens);
  const auto parts = static_cast<double>(point.model.layers * point.mesh.tp);
  return of_token * static_cast<double>(point.capacity) / parts / point.profile->datasheet.peak.per_second();
}

RunKind kind_of_run(const Value& study, const PointSpec& point, std::string stack) {
  return {workload_of(study, point), std::move(stack), point.profile->provenance.device};
}

}  // namespace hdpsim
