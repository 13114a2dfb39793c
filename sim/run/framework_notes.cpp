#include "sim/run/framework_notes.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/run/step.h"
#include "sim/study/megatron_refusals.h"

namespace hdpsim {
namespace {

constexpr std::int64_t most_steps = 8;  // of a plan, whose number of micro-batches changes little from step to step

// "" where the study names none.
std::string preset_of(const Study& study) {
  const Value* framework = study.resolved.find("framework");
  const Value* preset = framework != nullptr && framework->is_map() ? framework->find("preset") : nullptr;
  return preset == nullptr ? "" : preset->text;
}

bool has_pipelines_of_megatron(const std::string& preset) {
  return preset.empty() || preset.starts_with("megatron") || preset.starts_with("nemo");
}

// The first problems of a plan, over a few steps.
std::vector<std::string> problems_of_plan(const StudyPoint& point, std::size_t plan) {
  for (std::int64_t step = 0; step < std::min(most_steps, point.spec.steps); ++step) {
    try {
      const Plan made = make_plan(point, plan, step, point.batches_of(plan).step(step));
      std::vector<std::string> found = megatron_plan_problems(point.spec, made);
      if (!found.empty()) return found;
    } catch (const PlanRefused&) {  // the run says so
    }
  }
  return {};
}

}  // namespace

std::vector<std::string> framework_notes(const Study& study) {
  const std::string preset = preset_of(study);
  if (!has_pipelines_of_megatron(preset)) return {};
  const std::string framework = preset.empty() ? "Megatron-LM" : preset;
  std::vector<std::string> lines;
  const auto tell = [&](const std::string& what, const std::string& problem) {
    std::string line = fmt::format("note: {}: {} does not run {}", what, framework, problem);
    if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(std::move(line));
  };
  for (const StudyPoint& point : study.points) {
    for (const std::string& problem : megatron_mesh_problems(point.spec)) tell(study.name, problem);
    if (!may_refuse_plans(point.spec)) continue;
    for (std::size_t plan = 0; plan < study.plans.size(); ++plan) {
      for (const std::string& problem : problems_of_plan(point, plan)) tell(study.plans[plan].name, problem);
    }
  }
  return lines;
}

}  // namespace hdpsim
