#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/app/command.h"
#include "sim/base/atomic_file.h"
#include "sim/document/document.h"
#include "sim/plan/plan_check.h"
#include "sim/plan/plan_file.h"
#include "sim/plan/scheduler_output.h"
#include "sim/run/plan_documents.h"
#include "sim/study/study.h"

namespace hdpsim::app {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view step_mark = "{step}";

struct ImportPlanCommand {
  std::vector<std::string> files;
  std::string out;
  std::string study;
  std::vector<std::string> overrides;
  std::int64_t point = 0;
  std::string policy;
  std::int64_t ranks = 0;  // 0: the file or the study says it, as the next two
  std::int64_t capacity = 0;
  std::int64_t layers = 0;
  std::int64_t step = 0;
};

// The study with a plan that fits any pool: its own may be the files that are to be written.
Study study_of(const ImportPlanCommand& command, Catalog& catalog) {
  std::vector<std::string> overrides = command.overrides;
  overrides.emplace_back("plans=[{hdp-naive: {offload: auto}}]");
  overrides.emplace_back("compare_to=null");
  return load_study(command.study, overrides, catalog);
}

// What the point of a study says of its steps; it must outlive the result.
void take_from(const StudyPoint& point, SchedulerContext& context) {
  const PlanningContext pool = planning_context(point.spec, point.make_world()->job());
  context.ranks = pool.ranks;
  context.capacity = pool.capacity;
  context.layers = pool.layers;
  context.batch = [&point](std::int64_t step) { return point.batches->step(step); };
  context.steps = point.spec.steps;
}

SchedulerContext context_of(const ImportPlanCommand& command) {
  SchedulerContext context;
  context.policy = command.policy.empty() ? fs::path(command.files.front()).stem().string() : command.policy;
  context.first_step = command.step;
  if (command.ranks > 0) context.ranks = command.ranks;
  if (command.capacity > 0) context.capacity = command.capacity;
  if (command.layers > 0) context.layers = command.layers;
  return context;
}

// The plans of all files by their steps, each with the file that it comes from.
struct Imported {
  std::map<std::int64_t, std::pair<std::string, Plan>> plans;
  std::vector<std::string> unread;
};

Imported imported(const std::vector<std::string>& files, SchedulerContext context) {
  Imported all;
  Diagnostics found;
  for (const std::string& file : files) {
    const auto text = read_text_file(file, found);
    if (!text) continue;
    SchedulerPlans read = read_scheduler_output(file, *text, has_step_a_line(file), context, found);
    context.first_step = read.next_step;
    for (Plan& plan : read.plans) {
      const std::int64_t step = plan.step;
      const auto [other, is_new] = all.plans.try_emplace(step, file, std::move(plan));
      if (is_new) continue;
      found.error({file, 0, 0}, fmt::format("step {} is in {} already", step, other->second.first),
                  "state 'step', or give every step once");
    }
    for (const std::string& key : read.unread) {
      if (std::find(all.unread.begin(), all.unread.end(), key) == all.unread.end()) all.unread.push_back(key);
    }
  }
  found.throw_if_any();
  return all;
}

// The name of a plan with something in the place of {step}.
std::string with_step(std::string out, const std::string& step) {
  const std::size_t at = out.find(step_mark);
  return at == std::string::npos ? out : out.replace(at, step_mark.size(), step);
}

// The file of a step, whose number has as many digits as that of the last step: names then sort as steps do.
std::string file_of(const std::string& out, std::int64_t step, std::int64_t last) {
  return with_step(out, fmt::format("{:0{}}", step, std::to_string(last).size()));
}

void write_plan(const std::string& file, const PlanDocument& document) {
  const fs::path folder = fs::path(file).parent_path();
  std::error_code error;
  if (!folder.empty()) fs::create_directories(folder, error);
  if (error) throw MachineError(fmt::format("cannot make the folder {}: {}", folder.string(), error.message()));
  remove_left_overs(file);
  write_file(file, plan_text(document));
}

void tell_capacity(const std::string& file, const Plan& plan) {
  const std::vector<std::string> problems = over_capacity(plan);
  if (problems.empty()) return;
  const std::string more = problems.size() == 1 ? "" : fmt::format(", and so for {} more", problems.size() - 1);
  note(fmt::format("{}: {}{}; in a study with this capacity the plan does not fit", file, problems.front(), more));
}

int run_import_plan(const ImportPlanCommand& command, const Session& session) {
  SchedulerContext context = context_of(command);
  Catalog catalog(session.data_folder);
  std::optional<Study> study;
  if (!command.study.empty()) {
    study = study_of(command, catalog);
    take_from(chosen_point(*study, command.point), context);
  }
  const Imported all = imported(command.files, std::move(context));
  if (all.plans.size() > 1 && command.out.find(step_mark) == std::string::npos) {
    throw InputError(fmt::format("{} steps need a file each", all.plans.size()),
                     "write {step} where its number belongs: --out 'plans/{step}.json'");
  }
  const std::int64_t last = all.plans.rbegin()->first;
  for (const auto& [step, plan] : all.plans) session.inputs.require_none_at(file_of(command.out, step, last));
  for (const std::string& key : all.unread) note(fmt::format("'{}' says nothing about a plan, and is left out", key));
  for (const auto& [step, plan] : all.plans) {
    const std::string file = file_of(command.out, step, last);
    write_plan(file, study ? document_of(*study, chosen_point(*study, command.point), plan.second, version)
                           : PlanDocument{.plan = plan.second});
    tell_capacity(file, plan.second);
  }
  note(fmt::format("wrote {} plan{}; in a study: plans: [{{file: {}}}]", all.plans.size(),
                   all.plans.size() == 1 ? "" : "s", with_step(command.out, "*")));
  return 0;
}

}  // namespace

void add_import_plan_command(Command app, Session& session) {
  const Command command =
      app.add_subcommand("import-plan", "Turn what another scheduler prints into plans for a study");
  ImportPlanCommand& options = add_command(command, session, run_import_plan);
  command.add_option("FILE", options.files, "Steps of a scheduler: JSON, or a step a line in .jsonl and .ndjson")
      .required();
  command
      .add_option("--out", options.out, "The plan to write; {step} in its name is replaced by the number of the step")
      .required()
      .type_name("PLAN");
  const Option study =
      command.add_option("--study", options.study, "The study that says what the files do not: batches and pool");
  study.type_name("STUDY");
  add_count(command, "--point", options.point, "Which point of its sweep, counted from 0 (default: 0)", 0).needs(study);
  add_set(command, options.overrides, "the study");
  add_count(command, "--ranks", options.ranks, "HDP ranks of the pool").excludes(study);
  add_count(command, "--capacity", options.capacity, "Tokens that one rank holds per micro-batch").excludes(study);
  add_count(command, "--layers", options.layers, "Layers of a pass of a rank, for plans that offload").excludes(study);
  command.add_option("--policy", options.policy, "The name of the scheduler, for people (default: that of FILE)")
      .type_name("NAME");
  add_count(command, "--step", options.step, "The number of the first step that states none (default: 0)", 0);
  command.footer(
      "A step says which ranks form a group and which sequences it holds, in the order of execution; a sequence is\n"
      "named by its place in the batch, from 0:\n"
      "  {\"lengths\": [8000, 500, 700], \"ranks\": 4, \"capacity\": 4096, \"micro_batches\": [\n"
      "    {\"ranks\": [0, 1], \"sequences\": [0]}, {\"size\": 1, \"sequences\": [2, 1]}]}\n"
      "A group with only a \"size\" gets the ranks behind the group before it, and may have its \"first\" rank;\n"
      "[first, size, [sequences]] and [size, [sequences]] say the same in short. A list of groups is a round, whose\n"
      "groups run side by side: ranks are then counted from 0 again. \"offload\", from 0 to 1, is optional.\n"
      "Two other forms take the place of \"micro_batches\":\n"
      "  \"by_rank\": [[[0], [2, 1]], [[3, 4]]]       for every rank its micro-batches, or one list of sequences\n"
      "  \"sample_id_groups\": [[[0], [0], [2, 1]]]   Megatron-LM's: by micro-batch and rank, what the rank has a part "
      "of\n"
      "Other keys are reported and ignored.\n"
      "Examples:\n  hdpsim import-plan groups.json --out plan.json --ranks 8 --capacity 8Ki\n"
      "  hdpsim import-plan mine.jsonl --out 'plans/{step}.json' --study configs/studies/tiny.yaml");
}

}  // namespace hdpsim::app
