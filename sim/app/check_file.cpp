#include "sim/app/check_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include "calib/measure/sample_file.h"
#include "sim/base/quantity_text.h"
#include "sim/base/text.h"
#include "sim/cluster/cluster_config.h"
#include "sim/cluster/topology_matrix.h"
#include "sim/decide/prices.h"
#include "sim/document/json_stream.h"
#include "sim/model/model_config.h"
#include "sim/model/parameters.h"
#include "sim/model/work.h"
#include "sim/plan/plan_file.h"
#include "sim/plan/scheduler_output.h"
#include "sim/profile/profile_file.h"
#include "sim/study/study.h"
#include "sim/tasks/task_file.h"
#include "sim/trace/description.h"
#include "sim/trace/trace_file.h"
#include "sim/validate/validation_study.h"

namespace hdpsim::app {
namespace {

bool has_any(const Value& document, std::initializer_list<std::string_view> keys) {
  return std::any_of(keys.begin(), keys.end(), [&](std::string_view key) { return document.find(key) != nullptr; });
}

std::string check_study(const std::string& path, Catalog& catalog) {
  const Study study = load_study(path, {}, catalog);
  return fmt::format("a study of {} points and {} runs", study.points.size(), study.run_count());
}

CheckedFile check_plan_file(const std::string& path) {
  Diagnostics diagnostics;
  const std::optional<Plan> plan = load_sound_plan(path, diagnostics);
  diagnostics.throw_if_any();
  CheckedFile checked{fmt::format("a plan of '{}': {} sequences in {} micro-batches on {} ranks", plan->policy,
                                  plan->sequence_tokens.size(), plan->micro_batches.size(), plan->ranks),
                      {}};
  if (plan->sequence_tokens.empty()) checked.notes.push_back("hdpsim execute refuses it: nothing would be trained");
  return checked;
}

std::string check_prices(const std::string& path) {
  std::vector<std::string> names;
  for (const auto& [name, price] : load_prices(path).hardware) names.push_back(name);
  return fmt::format("prices of {}", joined(names, ", "));
}

std::string check_tasks(const std::string& path, Catalog& catalog) {
  const TaskFile file = load_task_file(path, {}, catalog);
  return fmt::format("tasks in {} case{}, {} in the first", file.cases.size(), file.cases.size() == 1 ? "" : "s",
                     file.cases.front().tasks.size());
}

// What its steps leave to a study or to options is no problem of the file.
std::string check_scheduler(const std::string& path) {
  Diagnostics diagnostics;
  const auto text = read_text_file(path, diagnostics);
  diagnostics.throw_if_any();
  SchedulerContext context;
  context.is_partial = true;
  const SchedulerPlans read = read_scheduler_output(path, *text, has_step_a_line(path), context, diagnostics);
  diagnostics.throw_if_any();
  return fmt::format("{} step{} of a scheduler, for hdpsim import-plan", read.plans.size(),
                     read.plans.size() == 1 ? "" : "s");
}

CheckedFile check_cluster(const Value& document, const Catalog& catalog, Diagnostics& diagnostics) {
  const auto cluster = catalog.cluster(document, diagnostics);
  diagnostics.throw_if_any();
  return {fmt::format("a cluster of {} x {}, {} a node", cluster->devices, cluster->device, cluster->devices_per_node),
          cluster->notes};
}

/// The layers that predict tokens further on, which published sizes leave out.
struct PredictionLayers {
  std::int64_t layers = 0;
  std::int64_t parameters = 0;
};

// They are behind all others, and the first of them joins the stream with the embedding of the next token.
PredictionLayers prediction_layers(const Transformer& model) {
  std::int64_t first = 0;
  for (const LayerRun& run : model.pattern) {
    const Layer& layer = run.kind == 0 ? model : model.others[run.kind - 1];
    const std::int64_t layers = model.layers - first;
    if (layer.joins) return {layers, parameters_of_runs(model, layer_runs(model, first, layers))};
    first += run.count;
  }
  return {};
}

CheckedFile check_model(const std::string& path, Diagnostics& diagnostics) {
  const auto model = load_model(path, diagnostics);
  diagnostics.throw_if_any();
  const auto text = [](std::int64_t count) { return short_number(static_cast<double>(count)); };
  const std::int64_t all = parameter_count(*model);
  const std::int64_t active = active_parameter_count(*model);
  const PredictionLayers further = prediction_layers(*model);
  CheckedFile checked{
      fmt::format("a model of {} parameters{} in {} layers{}", text(all),
                  active < all ? fmt::format(", {} of them active,", text(active)) : "", model->layers,
                  further.layers == 0 ? ""
                                      : fmt::format(", of which {}, of {}, predict{} further tokens", further.layers,
                                                    text(further.parameters), further.layers == 1 ? "s" : "")),
      {}};
  for (const std::string& part : model->left_out) checked.notes.push_back("left out is " + part);
  return checked;
}

std::string check_profile(const Value& document, const std::string& path, Diagnostics& diagnostics) {
  const auto profile = read_profile(document, std::filesystem::path(path).stem().string(), diagnostics);
  diagnostics.throw_if_any();
  return fmt::format("a profile of {}, labelled {}", profile->provenance.device,
                     profile_label_name(profile->provenance.label));
}

std::string check_samples(const std::string& path) {
  Diagnostics diagnostics;
  const auto samples = calib::read_sample_file(path, diagnostics);
  diagnostics.throw_if_any();
  return fmt::format("{} measurements of kernels of a {}, for hdpsim calibrate --from-samples",
                     samples->measurements.size(), samples->header.circumstances.device);
}

std::string check_validation(const std::string& path, Catalog& catalog) {
  const ValidationStudy validation = load_validation(path, catalog);
  const auto predicted = std::count_if(validation.points.begin(), validation.points.end(),
                                       [](const auto& point) { return point.has_value(); });
  return fmt::format("a validation set of {} cases, {} of which can be predicted", validation.set.cases.size(),
                     predicted);
}

CheckedFile check_lengths(const std::string& path) {
  const TraceFormat format = detect_format(path);
  if (holds_distribution(format)) {
    (void)read_distribution(path);
    return {fmt::format("a distribution of lengths ({})", name_of(format)), {}};
  }
  const Description description = describe(*open_trace(path));
  CheckedFile checked{fmt::format("{} lengths, {} tokens", description.count, description.tokens), {}};
  if (description.halves && description.halves->differ) checked.notes.push_back(halves_note(*description.halves));
  return checked;
}

FileKind found_kind(const std::string& path) {
  Diagnostics diagnostics;
  const Value outline = load_outline(path, diagnostics);
  if (outline.is_null()) diagnostics.throw_if_any();
  if (const auto kind = kind_of_file(path, outline)) return *kind;
  throw InputError(Position{path, 0, 0}, "cannot tell what kind of file this is",
                   fmt::format("say it with --kind {}", joined(file_kind_names(), "|")));
}

Value loaded(const std::string& path, Diagnostics& diagnostics) {
  Value document = load_document(path, diagnostics);
  if (document.is_null()) diagnostics.throw_if_any();
  return document;
}

CheckedFile check_document(const std::string& path, std::optional<FileKind> told, Catalog& catalog) {
  Diagnostics diagnostics;
  switch (told ? *told : found_kind(path)) {
    case FileKind::study:
      return {check_study(path, catalog), {}};
    case FileKind::plan:
      return check_plan_file(path);
    case FileKind::cluster:
      return check_cluster(loaded(path, diagnostics), catalog, diagnostics);
    case FileKind::model:
      return check_model(path, diagnostics);
    case FileKind::profile:
      return {check_profile(loaded(path, diagnostics), path, diagnostics), {}};
    case FileKind::validation:
      return {check_validation(path, catalog), {}};
    case FileKind::scheduler:
      return {check_scheduler(path), {}};
    case FileKind::samples:
      return {check_samples(path), {}};
    case FileKind::prices:
      return {check_prices(path), {}};
    case FileKind::tasks:
      return {check_tasks(path, catalog), {}};
    case FileKind::lengths:
      break;
  }
  return check_lengths(path);
}

}  // namespace

const std::vector<std::string>& file_kind_names() {
  static const std::vector<std::string> names = {"study",      "plan",      "cluster", "model",  "profile", "lengths",
                                                 "validation", "scheduler", "samples", "prices", "tasks"};
  return names;
}

std::optional<FileKind> kind_of_file(const std::string& path, const Value& document) {
  if (is_named_as_lengths(path)) return FileKind::lengths;
  if (const Value* schema = document.find("schema")) {
    if (schema->text.starts_with("hdpsim.plan/")) return FileKind::plan;  // of any number, which its reader tells
    if (schema->text.starts_with("hdpsim.profile/")) return FileKind::profile;
  }
  if (holds_scheduler_step(document) && document.find("schedule") == nullptr) return FileKind::scheduler;
  if (has_any(document, {"columns", "rows"})) return FileKind::validation;
  if (has_any(document, {"modules", "tasks"})) return FileKind::tasks;
  if (has_any(document, {"plans", "data", "mesh", "sweep"})) return FileKind::study;
  if (has_any(document, {"model_type", "architectures", "hidden_size", "n_embd", "d_model"})) return FileKind::model;
  if (has_any(document, {"node", "tiers", "preset"})) return FileKind::cluster;
  if (has_any(document, {"hardware"})) return FileKind::prices;
  if (has_any(document, {"provenance", "datasheet"})) return FileKind::profile;
  return std::nullopt;
}

CheckedFile check_file(const std::string& path, std::optional<FileKind> kind, Catalog& catalog) {
  if (!kind && is_there(path) && holds_topology_matrix(path)) {
    Diagnostics diagnostics;
    refuse_topology_matrix(path, diagnostics);
    diagnostics.throw_if_any();
  }
  if (!kind && has_step_a_line(path) && is_there(path) && holds_scheduler_steps(path)) kind = FileKind::scheduler;
  if (!kind && calib::holds_samples(path)) kind = FileKind::samples;
  const bool lengths = kind ? *kind == FileKind::lengths : is_named_as_lengths(path);
  return lengths ? check_lengths(path) : check_document(path, kind, catalog);
}

}  // namespace hdpsim::app
