#include <fmt/format.h>

#include "sim/app/command.h"
#include "sim/app/damage_notes.h"
#include "sim/app/progress.h"
#include "sim/app/signals.h"
#include "sim/app/study_parts.h"
#include "sim/app/study_processes.h"
#include "sim/base/output_folder.h"
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
  std::string out;
  Format format = Format::table;
  SharingOptions sharing;
  bool resume = false;
};

constexpr char baselines_folder[] = "baselines";

/// Where results go and finished runs are kept, if anywhere.
struct Kept {
  std::optional<OutputFolder> folder;
  std::optional<RunStore> runs;
};

// What the command line puts into the study.
std::vector<std::string> overrides_of(const StudyOptions& options) {
  return with_lengths(options.lengths.file, options.lengths.column, options.overrides);
}

int interrupted(const StudyOptions& options, const Study& study, std::string_view unfinished) {
  note(fmt::format("{}: stopped before {}{}", study.name, unfinished,
                   options.out.empty() ? "" : fmt::format("; --resume goes on with those kept in {}", options.out)));
  return exit_by_signal + stop_signal();
}

// False if it was stopped.
bool compare_with_tuned(const StudyOptions& options, const Study& study, Catalog& catalog, std::size_t jobs, Kept& kept,
                        std::vector<Run>& runs) {
  if (!study.tunes_baseline) return true;
  ProgressDisplay display;
  const TuneRun search{.jobs = jobs,
                       .resume = options.resume,
                       .damaged = damage_notes("searched again"),
                       .version = version,
                       .stop = [] { return stop_signal() != 0; },
                       .report = [&](const TuneProgress& progress) { display.show(progress); }};
  std::optional<BaselineStore> found;
  if (kept.folder) found.emplace(kept.folder->folder(baselines_folder), &*kept.folder);
  const BaselineRun run{search, found ? &*found : nullptr, kept.runs ? &*kept.runs : nullptr};
  const StudySource source{options.file, overrides_of(options), options.without};
  return compare_with_baselines(study, source, catalog, run, runs);
}

// For process 0, or the only one: the others help it.
int run_first(const StudyOptions& options, const Session& session, const Study& study, Catalog& catalog,
              const StudyProcesses& processes) {
  Kept kept;
  std::optional<OutputFolder>& folder = kept.folder;
  if (!options.out.empty()) {
    folder.emplace(options.out, OutputUse{"study", session.command_line, result_file_names(), options.resume},
                   &session.inputs);
    kept.runs.emplace(folder->folder("runs"), &*folder);
    if (options.resume) folder->keep("runs");
    if (options.resume) folder->keep(baselines_folder);
  }

  std::optional<std::vector<Run>> runs;
  StudyCoverage coverage;
  {
    ProgressDisplay display;
    const std::unique_ptr<RunWorkers> helpers = processes.helpers(study);
    const RunnerOptions how{.jobs = processes.jobs(),
                            .store = kept.runs ? &*kept.runs : nullptr,
                            .resume = options.resume,
                            .damaged = damage_notes("simulated again"),
                            .version = version,
                            .stop = [] { return stop_signal() != 0; },
                            .report = [&](const Progress& progress) { display.show(progress); },
                            .cover = [&](const auto& profile, const Coverage& part) { coverage.add(profile, part); },
                            .helpers = helpers.get()};
    const auto simulate = [&]() -> std::optional<std::vector<Run>> {
      auto found = run_study(study, how);
      if (!found || !compare_with_best_static(study, catalog, how, *found)) return std::nullopt;
      return found;
    };
    runs = resumable(options.out, "runs", simulate);
  }
  if (!runs || !compare_with_tuned(options, study, catalog, processes.jobs(), kept, *runs))
    return interrupted(options, study, fmt::format("its {} runs were finished", study.run_count()));
  for (const std::string& line : study_notes(study)) note(line);
  for (const std::string& line : framework_notes(study)) note(line);
  for (const std::string& warning : coverage.warnings(study, *runs)) note(warning);
  if (folder) {
    folder->remove_earlier();
    write_results(*folder, study, *runs, version);
  }
  const RunAdvice advice = advice_in_need(
      study, *runs, {.catalog = catalog, .jobs = processes.jobs(), .stop = [] { return stop_signal() != 0; }});
  print(formatted(*runs, study.resolved, version, options.format, advice), options.format);
  if (!folder) return 0;
  // The report simulates more than the table tells.
  const StudyReportOptions wanted{.jobs = processes.jobs(),
                                  .stop = [] { return stop_signal() != 0; },
                                  .note = note,
                                  .catalog = &catalog,
                                  .advice = advice};
  if (!write_study_report(*folder, study, *runs, wanted)) return interrupted(options, study, "its report was written");
  tell_removed(*folder);
  return 0;
}

int study_command(const StudyOptions& options, const Session& session) {
  if (options.resume && options.out.empty())
    throw InputError("--resume needs the folder of --out, where runs are kept");
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
  return served || stop_signal() == 0 ? 0 : exit_by_signal + stop_signal();
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
          "--out", options.out,
          "Write study.yaml, result.json, runs.csv, steps.csv, ranks.csv, links.csv, memory.csv and timing.csv there, "
          "report.html, a page with charts, unless the study says output.html: false, and if it says "
          "output.perfetto: true also timelines/, a step of every run for ui.perfetto.dev")
      .type_name("FOLDER");
  add_format(command, options.format);
  add_sharing(command, options.sharing);
  command.add_flag("--resume", options.resume,
                   "Take the runs that an earlier execution has finished from the folder of --out");
  command.footer(
      "Under mpirun or srun the processes share the runs; process 0 writes what one process alone would write.\n"
      "Examples:\n  hdpsim study configs/studies/bytescale-7b.yaml --set data.steps=5 --out results\n"
      "  hdpsim study configs/studies/tiny.yaml --set output.perfetto=true --out tiny\n"
      "  hdpsim study configs/studies/tiny.yaml --lengths lengths.csv --out mine");
}

}  // namespace hdpsim::app
