#include "sim/tune/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>

#include "sim/base/quantity_text.h"
#include "sim/base/text.h"
#include "sim/document/values.h"
#include "sim/plan/plan_check.h"
#include "sim/run/step.h"
#include "sim/tune/private_links.h"

namespace hdpsim {
namespace {

// What the busiest rank works by the work model is a lower bound but for what the model itself has too much of.
// Waiting, exchanges that show and other stages only add to it, and the mean stage takes at most what the longest does.
// But the model is a line through passes of half of, once and four times the capacity, in groups of one, two and at
// most three ranks (work_probes.h): where costs bend between these, as those of a table do, or where wider groups hide
// more, it may lie above them. Of 600 candidates on 32 GPUs one takes 3.3 % less in closed form, all others at most 2.6
// %.
constexpr double share_that_holds = 0.95;

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

struct Looked {
  EvaluatedStep step;
  std::string problem;  ///< Why it cannot run.
};

Looked looked_at(const MemoryUse& memory, std::int64_t tokens_held, std::int64_t capacity, const MemoryLimits& limits) {
  Looked looked{.step = {.time = {},
                         .device = memory.device,
                         .device_at_most = with_largest_gaps(memory),
                         .is_at_risk = fit_of(memory, limits) == MemoryFit::at_risk},
                .problem = memory_problem(memory, limits)};
  const std::string excess = capacity_excess(tokens_held, capacity);
  if (!excess.empty()) looked.problem = fmt::format("does not fit: {}", excess);
  return looked;
}

Looked planned(const StudyPoint& point, std::int64_t step, const MemoryLimits& limits) {
  const StepPreview result = preview_step(point, 0, step);
  Looked looked = looked_at(result.memory, result.tokens_held, point.spec.capacity, limits);
  looked.step.time = result.busy.scaled(share_that_holds);
  looked.step.plan = result.plan;
  looked.step.model_flops = result.model_flops;
  return looked;
}

Looked simulated(const StudyPoint& point, std::int64_t step, World& world, const MemoryLimits& limits) {
  const StepResult result = simulate_step(point, 0, step, world).result;
  Looked looked = looked_at(result.memory, result.tokens_held, point.spec.capacity, limits);
  looked.step.time = result.time;
  looked.step.model_flops = result.model_flops;
  looked.step.sharing = result.mean[Activity::cp_comm];
  looked.step.bubble = result.mean[Activity::bubble];
  return looked;
}

// Whether the study's grain gives what the closed form does, without simulating the step.
bool is_as_in_closed_form(const StudyPoint& point, std::int64_t step, World& world) {
  if (point.spec.grain != Grain::fluid || !point.spec.background.empty()) return false;
  const Plan plan = make_plan(point, 0, step, point.batches_of(0).step(step));
  return has_private_links(Program(plan, point.lowered), world.machine());
}

// False if the candidate cannot run.
bool add(const Looked& looked, Evaluation& evaluation) {
  evaluation.results.push_back(looked.step);
  evaluation.problem = looked.problem;
  return evaluation.problem.empty();
}

// A candidate is one of many, so that its first problem suffices.
std::string first_problem(const InputError& error) {
  const std::vector<Diagnostic> problems = error.diagnostics().sorted();
  return problems.empty() ? error.what() : problems.front().message;
}

void simulate(StudyPoint& point, const MemoryLimits& limits, Evaluation& evaluation) {
  // The closed form does not model other jobs.
  const bool in_closed_form = evaluation.fidelity == Fidelity::closed_form && point.spec.background.empty();
  if (in_closed_form) point.spec.grain = Grain::closed_form;
  const std::unique_ptr<World> world = point.make_world();
  for (const std::int64_t step : evaluation.steps) {
    const bool is_known =
        evaluation.closed_form && evaluation.results.empty() && is_as_in_closed_form(point, step, *world);
    const Looked looked = is_known ? Looked{*evaluation.closed_form, ""} : simulated(point, step, *world, limits);
    if (!add(looked, evaluation)) break;
  }
}

}  // namespace

std::string_view fidelity_name(Fidelity fidelity) {
  constexpr std::array<std::string_view, 3> names = {"plan", "closed form", "simulation"};
  return names.at(static_cast<std::size_t>(fidelity));
}

std::string key_of(const Evaluation& evaluation) {
  return fmt::format("candidate {}, {} of steps {}", evaluation.candidate, fidelity_name(evaluation.fidelity),
                     joined(evaluation.steps, ", "));
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
    // What a step would be with other costs is nothing to compare candidates by.
    point.spec.uncertainty.reset();
    if (evaluation.fidelity != Fidelity::plan) {
      simulate(point, limits, evaluation);
      return evaluation;
    }
    for (const std::int64_t step : evaluation.steps) {
      if (!add(planned(point, step, limits), evaluation)) break;
    }
  } catch (const InputError& error) {
    evaluation.problem = first_problem(error);
  }
  return evaluation;
}

}  // namespace hdpsim
