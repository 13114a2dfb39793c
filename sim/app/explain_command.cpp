#include <fmt/format.h>

#include <filesystem>

#include "sim/app/command.h"
#include "sim/app/finished_runs.h"
#include "sim/app/signals.h"
#include "sim/report/explanation_text.h"
#include "sim/run/best_static.h"
#include "sim/run/explain.h"
#include "sim/run/ordered_work.h"

namespace hdpsim::app {
namespace {

struct ExplainOptions {
  std::string folder;
  std::string run;
  std::int64_t step = -1;
  Format format = Format::table;
};

// The choice POINT, PLAN or POINT/PLAN.
ExplainChoice choice_of(const ExplainOptions& options) {
  const auto is_number = [](const std::string& word) {
    return !word.empty() && word.size() <= 9 && word.find_first_not_of("0123456789") == std::string::npos;
  };
  const std::string& text = options.run;
  const std::size_t slash = text.find('/');
  const std::string first = text.substr(0, slash);
  if (!is_number(first)) return {0, text, options.step};
  return {std::stoll(first), slash == std::string::npos ? "" : text.substr(slash + 1), options.step};
}

int explain_command(const ExplainOptions& options, const Session& session) {
  const std::filesystem::path folder = options.folder;
  Catalog catalog(session.data_folder);
  const Study study = load_study(folder / "study.yaml", {}, catalog);
  const ExplainChoice choice = choice_of(options);
  (void)chosen_plans(study, choice);  // before anything is simulated

  catch_stop_signals();
  const auto runs = finished_runs(study, folder, [&](const RunnerOptions& how, std::vector<Run>& found) {
    return compare_with_best_static(study, catalog, how, found, static_cast<std::size_t>(choice.point));
  });
  if (!runs) return stopped_exit();
  ProgressDisplay display;
  const AdviceOptions how{
      .catalog = catalog, .jobs = one_a_processor(), .stop = is_stopped, .report = [&](const AdviceProgress& progress) {
        display.show(progress);
      }};
  std::vector<Explanation> told = explain(study, *runs, choice, how);
  if (told.empty()) return stopped_exit();
  print(explained(study, *runs, choice, std::move(told), options.format), options.format);
  if (options.run.empty() && study.points.size() > 1) {
    note(fmt::format("this was point 0 of {}; name another one: hdpsim explain {} {}", study.points.size(),
                     options.folder, study.points.size() - 1));
  }
  return 0;
}

}  // namespace

void add_explain_command(Command app, Session& session) {
  const Command command = app.add_subcommand(
      "explain", "Say why the plans of a finished study take as long as they do, and what would help");
  ExplainOptions& options = add_command(command, session, explain_command);
  command.add_option("FOLDER", options.folder, "What hdpsim study --out has written")
      .required()
      .existing_folder()
      .type_name("FOLDER");
  command
      .add_option("RUN", options.run,
                  "A plan, a point of the sweep counted from 0, or both: 3/hdp-balance (default: all plans of point 0)")
      .type_name("RUN");
  add_count(command, "--step", options.step,
            "Which step, counted from 0 (default: the one whose time is nearest to the median)", 0);
  command
      .add_option(
          "--format",
          [&options](const std::string& text) { options.format = text == "json" ? Format::json : Format::table; },
          "What to print: table or json")
      .one_of({"table", "json"})
      .type_name("FORMAT");
  command.footer(
      "The critical path is the chain of micro-batches each of which waited for the one before it. What would help is\n"
      "simulated: the same plan with one thing improved. So is what you could change in the study, as after --set: "
      "every\n"
      "change is read, planned anew and simulated, alone and together with others; what gains nothing, or cannot run, "
      "is\n"
      "left out.\n"
      "Example:\n  hdpsim study configs/studies/tiny.yaml --out tiny\n  hdpsim explain tiny 1/hdp-naive");
}

}  // namespace hdpsim::app
