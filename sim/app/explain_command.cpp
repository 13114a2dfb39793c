#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "sim/app/command.h"
#include "sim/app/damage_notes.h"
#include "sim/app/progress.h"
#include "sim/app/signals.h"
#include "sim/base/quantity_text.h"
#include "sim/document/values.h"
#include "sim/report/explanation_text.h"
#include "sim/report/table.h"
#include "sim/run/explain.h"
#include "sim/run/runner.h"
#include "sim/study/study_choice.h"

namespace hdpsim::app {
namespace {

struct ExplainOptions {
  std::string folder;
  std::string run;
  std::int64_t step = -1;
  Format format = Format::table;
};

/// The choice POINT, PLAN or POINT/PLAN.
struct RunChoice {
  std::int64_t point = 0;
  std::string plan;  ///< Empty: all.
};

RunChoice choice_of(const std::string& text) {
  const auto is_number = [](const std::string& word) {
    return !word.empty() && word.size() <= 9 && word.find_first_not_of("0123456789") == std::string::npos;
  };
  const std::size_t slash = text.find('/');
  const std::string first = text.substr(0, slash);
  if (!is_number(first)) return {0, text};
  return {std::stoll(first), slash == std::string::npos ? "" : text.substr(slash + 1)};
}

// Takes the runs that the study has left in the folder and simulates missing ones again.
std::optional<std::vector<Run>> runs_of(const Study& study, const std::filesystem::path& folder) {
  std::optional<RunStore> store;
  if (std::filesystem::is_directory(folder / "runs")) store = RunStore::reader(folder / "runs");
  ProgressDisplay display;
  return run_study(study, {.jobs = std::max(1U, std::thread::hardware_concurrency()),
                           .store = store ? &*store : nullptr,
                           .resume = store.has_value(),
                           .damaged = damage_notes("simulated again"),
                           .version = version,
                           .stop = [] { return stop_signal() != 0; },
                           .report = [&](const Progress& progress) { display.show(progress); }});
}

std::string title_of(const Study& study, const Run& run) {
  std::string title = fmt::format("{}: {}", study.name, run.info.setting);
  for (const auto& [path, value] : run.info.coordinates) title += fmt::format(", {} {}", path, line_of(value));
  return title;
}

int run_command(const ExplainOptions& options, const Session& session) {
  const std::filesystem::path folder = options.folder;
  Catalog catalog(session.data_folder);
  const Study study = load_study(folder / "study.yaml", {}, catalog);
  const RunChoice choice = choice_of(options.run);
  const StudyPoint& point = chosen_point(study, choice.point);
  if (options.step >= point.spec.steps) {
    throw InputError(
        fmt::format("there is no step {}: the runs have {}, counted from 0", options.step, point.spec.steps));
  }
  std::vector<std::size_t> plans;
  if (!choice.plan.empty()) plans = {chosen_plan(study, choice.plan)};
  for (std::size_t plan = 0; choice.plan.empty() && plan < study.plans.size(); ++plan) plans.push_back(plan);

  catch_stop_signals();
  const auto runs = runs_of(study, folder);
  if (!runs) return exit_by_signal + stop_signal();
  const std::size_t first = static_cast<std::size_t>(choice.point) * study.plans.size();
  // All plans are explained by the same step: that of the first plan.
  const std::int64_t step = options.step >= 0 ? options.step : typical_step(runs->at(first + plans.front()));
  std::vector<Explanation> told;
  for (const std::size_t plan : plans) {
    told.push_back(explain(point, plan, step));
    told.back().plan = study.plans[plan].name;
    told.back().excess = memory_excess(runs->at(first + plan));
  }
  print(formatted(title_of(study, runs->at(first)), told, options.format), options.format);
  if (options.run.empty() && study.points.size() > 1) {
    note(fmt::format("this was point 0 of {}; name another one: hdpsim explain {} {}", study.points.size(),
                     options.folder, study.points.size() - 1));
  }
  return 0;
}

}  // namespace

void add_explain_command(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand(
      "explain", "Say why the plans of a finished study take as long as they do, and what would help");
  ExplainOptions& options = add_command(*command, session, run_command);
  command->add_option("FOLDER", options.folder, "What hdpsim study --out has written")
      ->required()
      ->check(CLI::ExistingDirectory)
      ->type_name("FOLDER");
  command
      ->add_option(
          "RUN", options.run,
          "A plan, a point of the sweep counted from 0, or both: 3/hdp-balance (default: all plans of point 0)")
      ->type_name("RUN");
  add_count(*command, "--step", options.step,
            "Which step, counted from 0 (default: the one whose time is nearest to the median)", 0);
  command
      ->add_option_function<std::string>(
          "--format",
          [&options](const std::string& text) { options.format = text == "json" ? Format::json : Format::table; },
          "What to print: table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->type_name("FORMAT");
  command->footer(
      "The critical path is the chain of micro-batches each of which waited for the one before it. What would help is\n"
      "simulated: the same plan with one thing improved.\n"
      "Example:\n  hdpsim study configs/studies/tiny.yaml --out tiny\n  hdpsim explain tiny 1/hdp-naive");
}

}  // namespace hdpsim::app
