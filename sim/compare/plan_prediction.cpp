#include "sim/compare/plan_prediction.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "sim/plan/plan_file.h"
#include "sim/program/program.h"
#include "sim/report/trace_events.h"
#include "sim/run/plan_documents.h"
#include "sim/run/step.h"

namespace hdpsim {
namespace {

constexpr std::int64_t most_instructions = 10'000'000;

PlanDocument document_in(const std::string& file) {
  Diagnostics diagnostics;
  auto document = load_sound_document(file, diagnostics);
  diagnostics.throw_if_any();
  return std::move(*document);
}

void require_fit(const PlanDocument& document, const std::string& file, const PointSpec& spec) {
  Diagnostics diagnostics;
  const auto require = [&](bool is_given, std::int64_t planned, std::int64_t own, const char* what) {
    if (!is_given || planned == own) return;
    diagnostics.error({file, 0, 0}, fmt::format("the plan is for {} {}, the study has {}", planned, what, own),
                      "name the study that the training planned with");
  };
  const PlanMesh& mesh = document.mesh;
  require(true, document.plan.ranks, spec.mesh.hdp, "HDP ranks");
  require(document.made_by.has_value(), mesh.tp, spec.mesh.tp, "devices that compute a layer together");
  require(document.made_by.has_value(), mesh.pp, spec.mesh.pp, "stages of a pipeline");
  require(mesh.model_layers > 0, mesh.model_layers, static_cast<std::int64_t>(spec.model.layers), "layers");
  diagnostics.throw_if_any();
}

Batch batch_of(const Plan& plan) {
  Batch batch;
  for (std::size_t i = 0; i < plan.sequence_tokens.size(); ++i) {
    batch.sequences.push_back({plan.sequence_tokens[i], static_cast<std::int64_t>(i)});
  }
  return batch;
}

}  // namespace

bool names_plan_file(const std::string& plan) {
  return plan.ends_with(".json");
}

PointStep step_of_plan_file(const std::string& file, const StudyPoint& point) {
  PlanDocument document = document_in(file);
  require_fit(document, file, point.spec);
  Batch batch = batch_of(document.plan);
  raise_capacity(document.plan);
  return {point, std::move(batch), std::move(document.plan)};
}

std::string other_origin(const std::string& file, const Study& study, const StudyPoint& point) {
  const auto made_by = document_in(file).made_by;
  if (!made_by || made_by->hash == document_of(study, point, {}, "").made_by->hash) return {};
  return fmt::format(
      "The plan was made for study '{}' with another cluster, model, mesh or training: simulated is what it takes in "
      "'{}'.",
      made_by->study, study.name);
}

StepCourse predicted_course(const PointStep& planned) {
  const StudyPoint& point = planned.point;
  if (point.spec.mesh.pp > 1) {
    throw InputError(
        fmt::format("the study has pipelines of {} stages, which traces do not tell apart", point.spec.mesh.pp),
        "compare studies with mesh.pp: 1");
  }
  const Program program(planned.plan, point.lowered);
  const std::unique_ptr<World> world = point.make_world();
  StepConditions conditions = conditions_of(point);
  if (instructions_of(program) <= most_instructions) {
    world->machine().record_instructions = true;
    conditions.grain = Grain::exact;
  }
  TimelineFile timeline{.title = {.source = "predicted", .plan = planned.plan.policy, .step = planned.plan.step},
                        .timeline = simulate_plan(program, *world, conditions),
                        .processor = {}};
  return course_of("the prediction", timeline);
}

}  // namespace hdpsim
