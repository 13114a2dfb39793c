#include "sim/study/kind_of_run.h"

#include <algorithm>
#include <utility>

#include "sim/analysis/metrics.h"
#include "sim/model/layers.h"

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

Workload workload_of(const Value& study, const PointSpec& point) {
  if (has_experts(point.model)) return Workload::experts;
  if (!has_one_length(study)) return Workload::mixed_lengths;
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
