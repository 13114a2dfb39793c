#include "sim/tune/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/base/quantity_text.h"
#include "sim/base/text.h"
#include "sim/plan/plan_check.h"
#include "sim/run/step.h"

namespace hdpsim {
namespace {

// Name of the part that fills most of a device: "activations".
std::string_view largest_part(const MemoryParts& parts) {
  std::size_t largest = 0;
  for (std::size_t i = 1; i < memory_parts; ++i) {
    if (parts[static_cast<MemoryPart>(i)] > parts[static_cast<MemoryPart>(largest)]) largest = i;
  }
  return memory_part_name(static_cast<MemoryPart>(largest));
}

// Why the constant memory of the fullest stage's devices does not fit, whatever the micro-batches are; there is then
// nothing to plan.
std::string states_problem(const LoweringOptions& job, Bytes memory) {
  const ChunkMap chunks(job.pipeline, job.mesh.pp);
  const DeviceShape shape{.tp = job.mesh.tp, .pool = job.mesh.ranks_of_a_shard_group()};
  Bytes most;
  for (std::int64_t stage = 0; stage < job.mesh.pp; ++stage) {
    const DeviceMemory device(job.model, stage_shape(job.model, shape, chunks, stage), job.recipe,
                              expert_use(job.model, job.experts));
    most = std::max(most, device.states().total());
  }
  if (most <= memory) return "";
  return fmt::format("does not fit: {} of {} on a device before the first token", bytes_text(most), bytes_text(memory));
}

// A candidate is one of many, so that its first problem suffices.
std::string first_problem(const InputError& error) {
  const std::vector<Diagnostic> problems = error.diagnostics().sorted();
  return problems.empty() ? error.what() : problems.front().message;
}

}  // namespace

std::string key_of(const Evaluation& evaluation) {
  return fmt::format("candidate {}, {} of steps {}", evaluation.candidate,
                     evaluation.closed_form ? "closed form" : "simulation", joined(evaluation.steps, ", "));
}

std::string memory_problem(const MemoryUse& memory, const MemoryLimits& limits) {
  if (fit_of(memory, limits) != MemoryFit::no) return "";
  const bool is_of_device = memory.device > limits.device;
  return fmt::format("does not fit: {}{}", excess_text(memory, limits),
                     is_of_device ? fmt::format(", most of it {}", largest_part(memory.parts)) : "");
}

Study Evaluator::study_of(std::size_t candidate) {
  const std::lock_guard lock(reading_);
  return read_study(candidates_[candidate].study, catalog_);
}

std::string Evaluator::identity_of(std::size_t candidate) {
  try {
    return study_of(candidate).points.at(0).identity;
  } catch (const InputError& error) {
    return error.what();
  }
}

Evaluation Evaluator::evaluate(Evaluation evaluation) {
  try {
    Study study = study_of(evaluation.candidate);
    StudyPoint& point = study.points.at(0);
    const PointSpec& spec = point.spec;
    evaluation.gpus = spec.mesh.devices();
    evaluation.capacity = spec.capacity;
    evaluation.peak_per_s = mean_peak(spec.profile->datasheet.peak, spec.cluster, spec.nodes).per_second();
    const MemoryLimits limits{spec.cluster.least_device_memory(), spec.cluster.least_host_share()};
    evaluation.problem = states_problem(point.lowering(), limits.device);
    if (!evaluation.problem.empty()) return evaluation;
    // The closed form does not model other jobs.
    if (evaluation.closed_form && point.spec.background.empty()) point.spec.grain = Grain::closed_form;
    const auto world = point.make_world();
    for (const std::int64_t step : evaluation.steps) {
      const StepResult result = simulate_step(point, 0, step, *world).result;
      const bool is_at_risk = fit_of(result.memory, limits) == MemoryFit::at_risk;
      evaluation.results.push_back({result.time, result.memory.device, result.model_flops,
                                    with_largest_gaps(result.memory), is_at_risk, result.mean[Activity::cp_comm]});
      evaluation.problem = memory_problem(result.memory, limits);
      const std::string excess = capacity_excess(result.tokens_held, spec.capacity);
      if (!excess.empty()) evaluation.problem = fmt::format("does not fit: {}", excess);
      if (!evaluation.problem.empty()) break;
    }
  } catch (const InputError& error) {
    evaluation.problem = first_problem(error);
  }
  return evaluation;
}

}  // namespace hdpsim
