#include "sim/tasks/slice_data.h"

#include <algorithm>

#include "sim/base/check.h"

namespace hdpsim {

SliceData::SliceData(const TaskCase& of, const TaskWork& work) : case_(of), work_(work) {
  for (const TaskModule& module : of.modules) {
    const ModuleMemory& memory = memories_.emplace_back(module);
    const auto bytes = [&](OperatorKind kind) { return static_cast<double>(memory.states(kind, 1).count()); };
    state_bytes_.push_back({bytes(OperatorKind::layer), bytes(OperatorKind::head)});
  }
}

double SliceData::state_bytes(const ParameterPlace& place) const {
  return state_bytes_[place.module].at(place.kind == OperatorKind::layer ? 0 : 1);
}

const TaskNode& SliceData::node_of(std::size_t run) const {
  const MetaOp& meta_op = work_.runs[run];
  return case_.tasks[meta_op.task].nodes[meta_op.node];
}

std::int64_t SliceData::samples_of(const TaskSlice& slice) const {
  return node_of(slice.run).batch * tp_of(slice.run) / slice.devices;
}

double SliceData::summed_bytes(const ParameterPlace& place) const {
  const TaskModule& module = case_.modules[place.module];
  const std::int64_t bytes = module.recipe().gradient_bytes + module.model().element_bytes;
  return static_cast<double>(memories_[place.module].parameters(place.kind) * bytes);
}

std::vector<ParameterPlace> SliceData::parameters_of(const TaskSlice& slice, std::size_t place) const {
  const MetaOp& run = work_.runs[slice.run];
  const auto shard = static_cast<std::int64_t>(place) % tp_of(slice.run);
  std::vector<ParameterPlace> places;
  for (std::int64_t i = 0; i < slice.operators; ++i) {
    const std::int64_t layer = run.kind == OperatorKind::layer ? run.first + slice.first + i : 0;
    places.push_back({node_of(slice.run).module, run.kind, layer, shard});
  }
  return places;
}

Bytes SliceData::kept(const TaskSlice& slice) const {
  const OperatorKind kind = work_.runs[slice.run].kind;
  return slice.operators * memory_of(slice.run).kept(kind, samples_of(slice), node_of(slice.run).tokens);
}

double SliceData::output_bytes(std::size_t run) const {
  const TaskNode& node = node_of(run);
  return static_cast<double>(node.batch) * memory_of(run).output_bytes(node.tokens);
}

double SliceData::output_share(const TaskSlice& slice) const {
  return output_bytes(slice.run) / static_cast<double>(slice.devices);
}

namespace {

// The common part of the a-th of `parts_a` and the b-th of `parts_b` equal parts of a whole, as a share of it.
double common_part(std::int64_t a, std::int64_t parts_a, std::int64_t b, std::int64_t parts_b) {
  const std::int64_t begin = std::max(a * parts_b, b * parts_a);
  const std::int64_t end = std::min((a + 1) * parts_b, (b + 1) * parts_a);
  return end <= begin ? 0 : static_cast<double>(end - begin) / static_cast<double>(parts_a * parts_b);
}

}  // namespace

void SliceData::append_messages(const TaskSlice& from, const TaskSlice& to, std::vector<TaskMessage>& messages) const {
  const std::int64_t tp_from = tp_of(from.run);
  const std::int64_t tp_to = tp_of(to.run);
  const double bytes = output_bytes(from.run);
  for (std::int64_t receiver = 0; receiver < to.devices; ++receiver) {
    const DeviceId at = to.placed[static_cast<std::size_t>(receiver)];
    for (std::int64_t sender = 0; sender < from.devices; ++sender) {
      const double samples =
          common_part(sender / tp_from, from.devices / tp_from, receiver / tp_to, to.devices / tp_to);
      if (samples == 0) continue;
      const double tokens = common_part(sender % tp_from, tp_from, receiver % tp_to, tp_to);
      const DeviceId with = from.placed[static_cast<std::size_t>(sender)];
      if (tokens > 0 && with != at) messages.push_back({with, at, bytes * samples * tokens});
    }
  }
}

std::vector<const TaskSlice*> SliceInputs::of(const TaskSlice& slice) const {
  if (slice.first > 0) return {last_[slice.run]};
  std::vector<const TaskSlice*> inputs;
  for (const std::size_t run : work_.runs[slice.run].after) inputs.push_back(last_[run]);
  return inputs;
}

}  // namespace hdpsim
