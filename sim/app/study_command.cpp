#include <fmt/format.h>

#include "sim/app/command.h"
#include "sim/app/resumable.h"
#include "sim/app/study_parts.h"
#include "sim/app/study_processes.h"
#include "sim/results/result_files.h"
#include "sim/results/table.h"
#include "sim/run/best_static.h"
#include "sim/run/framework_notes.h"
#include "sim/run/runner.h"
#include "sim/run/step.h"
#include "sim/run/study_coverage.h"
#include "sim/study/data_options.h"
#include "sim/study/lengths.h"
#include "sim/study/study_notes.h"

namespace hdpsim::app {
namespace {

struct StudyOptions {
  std::string file;
  std::vector<std::string> overrides;
  std::vector<std::string> without;
  LengthsOptions lengths;
  ResumeOptions keeping;
  Format format = Format::table;
  SharingOptions sharing;
};

// What the command line puts into the study.
std::vector<std::string> overrides_of(const StudyOptions& options) {
  return with_lengths(options.lengths.file, options.lengths.column, options.overrides);
}

// False if it was stopped.
bool compare_with_tuned(const StudyOptions& options, const Study& study, Catalog& catalog, const BaselineRun& run,
                        std::vector<Run>& runs) {
  if (!study.tunes_baseline) return true;
  return compare_with_baselines(study, {options.file, overrides_of(options), options.without}, catalog, run, runs);
}

// The runs with their baselines; empty if it was stopped.
std::optional<std::vector<Run>> simulated(const StudyOptions& options, const Study& study, Catalog& catalog,
                                          const RunnerOptions& how, const Resumable& work) {
  auto runs = work.run([&](ProgressDisplay& display) -> std::optional<std::vector<Run>> {
    RunnerOptions shown = how;
    shown.report = [&](const Progress& progress) { display.show(progress); };
    auto found = run_study(study, shown);
    if (!found || !compare_with_best_static(study, catalog, shown, *found)) return std::nullopt;
    return found;
  });
  if (!runs) return std::nullopt;
  const bool is_compared = work.run([&](ProgressDisplay& display) {
    const TuneRun search{.jobs = how.jobs,
                         .version = version,
                         .stop = is_stopped,
                         .clock = [&] { return display.seconds(); },
                         .report = [&](const TuneProgress& progress) { display.show(progress); }};
    return compare_with_tuned(options, study, catalog, {search, how.journal}, *runs);
  });
  return is_compared ? std::move(runs) : std::nullopt;
}

// For process 0, or the only one: the others help it.
int run_first(const StudyOptions& options, const Session& session, const Study& study, Catalog& catalog,
              const StudyProcesses& processes) {
  Resumable work(options.keeping, session, {.kind = "study", .results = result_file_names()});
  Journal journal = work.kept().open(runs_title());
  StudyCoverage coverage;
  const std::unique_ptr<RunWorkers> helpers = processes.helpers(study);
  const std::shared_ptr<ShownSteps> shown = work.folder() == nullptr ? nullptr : watcher_for_report(study);
  const RunnerOptions how{.jobs = processes.jobs(),
                          .journal = &journal,
                          .version = version,
                          .stop = is_stopped,
                          .cover = [&](const auto& profile, const Coverage& part) { coverage.add(profile, part); },
                          .helpers = helpers.get(),
                          .watcher = shown.get()};
  const auto runs = simulated(options, study, catalog, how, work);
  if (!runs) {
    const std::string aim = fmt::format("its {} runs were finished", study.run_count());
    return stopped_before(options.keeping, study.name, aim);
  }
  for (const std::string& line : study_notes(study)) note(line);
  for (const std::string& line : framework_notes(study)) note(line);
  for (const std::string& warning : coverage.warnings(study, *runs)) note(warning);
  RunAdvice advice;
  const auto show = [&] {
    advice = advice_in_need(study, *runs, {.catalog = catalog, .jobs = processes.jobs(), .stop = is_stopped});
    print(formatted(*runs, study.resolved, version, options.format, advice), options.format);
  };
  if (work.folder() == nullptr) show();
  bool is_reported = true;
  work.write([&](OutputFolder& folder) {
    write_results(folder, study, *runs, version);
    show();
    // The report simulates more than the table tells.
    is_reported = write_study_report(folder, study, *runs,
                                     {.jobs = processes.jobs(),
                                      .stop = is_stopped,
                                      .note = note,
                                      .catalog = &catalog,
                                      .advice = advice,
                                      .shown = shown.get()});
  });
  return is_reported ? 0 : stopped_before(options.keeping, study.name, "its report was written");
}

int study_command(const StudyOptions& options, const Session& session) {
  require_folder(options.keeping);
  const StudyProcesses processes(options.sharing);
  Catalog catalog(session.data_folder);
  const Study study = processes.read([&] {
    Study loaded = load_study(options.file, overrides_of(options), catalog, options.without);
    if (const std::string size = large_step_note(loaded); !size.empty() && processes.is_first()) note(size);
    for (const StudyPoint& point : loaded.points) require_simulable(point);
    return loaded;
  });
  catch_stop_signals();
  if (processes.is_first()) return run_first(options, session, study, catalog, processes);
  const bool served = processes.serve(study);
  return served || stop_signal() == 0 ? 0 : stopped_exit();
}

}  // namespace

void add_study_command(Command app, Session& session) {
  const Command command =
      app.add_subcommand("study", "Simulate what every plan of a study costs at every point of its sweep");
  StudyOptions& options = add_command(command, session, study_command);
  command.add_option("STUDY", options.file, "The study, a YAML file").required();
  add_set(command, options.overrides, "the study");
  add_lengths(command, options.lengths);
  add_without(command, options.without);
  command
      .add_option(
          "--out", options.keeping.out,
          "Write study.yaml, result.json, runs.csv, steps.csv, ranks.csv, links.csv, memory.csv and timing.csv there, "
          "report.html, a page with charts, unless the study says output.html: false, and if it says "
          "output.perfetto: true also timelines/, a step of every run for ui.perfetto.dev")
      .type_name("FOLDER");
  add_format(command, options.format);
  add_sharing(command, options.sharing);
  command.add_flag("--resume", options.keeping.resume,
                   "Take the runs that an earlier execution has finished from the folder of --out");
  command.footer(
      "Under mpirun or srun the processes share the runs; process 0 writes what one process alone would write.\n"
      "Examples:\n  hdpsim study configs/studies/bytescale-7b.yaml --set data.steps=5 --out results\n"
      "  hdpsim study configs/studies/tiny.yaml --set output.perfetto=true --out tiny\n"
      "  hdpsim study configs/studies/tiny.yaml --lengths lengths.csv --out mine");
}

}  // namespace hdpsim::app
