#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "sim/app/command.h"
#include "sim/app/progress.h"
#include "sim/app/signals.h"
#include "sim/report/output_file.h"
#include "sim/study/not_modelled.h"
#include "sim/study/runner.h"
#include "sim/study/study_coverage.h"
#include "sim/study/study_output.h"
#include "sim/study/study_report.h"

namespace hdpsim::app {
namespace {

struct StudyOptions {
  std::string file;
  std::vector<std::string> overrides;
  std::vector<std::string> without;
  std::string out;
  Format format = Format::table;
  std::int64_t jobs = std::max(1U, std::thread::hardware_concurrency());
  bool resume = false;
};

int interrupted(const StudyOptions& options, const Study& study) {
  note(fmt::format("{}: stopped before its {} runs were finished{}", study.name, study.run_count(),
                   options.out.empty() ? "" : fmt::format("; --resume goes on with those kept in {}", options.out)));
  return exit_by_signal + stop_signal();
}

int run_command(const StudyOptions& options, const Session& session) {
  if (options.resume && options.out.empty())
    throw InputError("--resume needs the folder of --out, where runs are kept");
  Catalog catalog(session.data_folder);
  const Study study = load_study(options.file, options.overrides, catalog, options.without);
  std::optional<RunStore> store;
  if (!options.out.empty()) {
    prepare_folder(options.out);
    const std::filesystem::path runs = std::filesystem::path(options.out) / "runs";
    prepare_folder(runs);
    store.emplace(runs);
  }

  catch_stop_signals();
  std::optional<std::vector<Run>> runs;
  StudyCoverage coverage;
  {
    ProgressDisplay display;
    runs = run_study(
        study, {.jobs = static_cast<std::size_t>(options.jobs),
                .store = store ? &*store : nullptr,
                .resume = options.resume,
                .version = version,
                .stop = [] { return stop_signal() != 0; },
                .report = [&](const Progress& progress) { display.show(progress); },
                .cover = [&](const PointSpec& point, const Coverage& part) { coverage.add(point.profile, part); }});
  }
  if (!runs) return interrupted(options, study);
  for (const std::string& warning : cold_step_warnings(study)) note(warning);
  for (const std::string& warning : coverage.warnings(study, *runs)) note(warning);
  if (!options.out.empty()) {
    const StudyReportOptions wanted{.stop = [] { return stop_signal() != 0; }, .note = note};
    if (!write_report(options.out, study, *runs, version, wanted)) return interrupted(options, study);
    write_results(options.out, study, *runs, version);
  }
  print(formatted(*runs, study.resolved, version, options.format));
  return 0;
}

}  // namespace

void add_study_command(CLI::App& app, Session& session) {
  CLI::App* command =
      app.add_subcommand("study", "Simulate what every plan of a study costs at every point of its sweep");
  StudyOptions& options = add_command(*command, session, run_command);
  command->add_option("STUDY", options.file, "The study, a YAML file")->required();
  command->add_option("--set", options.overrides, "Override a value of the study; may be given several times")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  add_without(*command, options.without);
  command
      ->add_option(
          "--out", options.out,
          "Write study.yaml, result.json, runs.csv, steps.csv, ranks.csv, links.csv, memory.csv and timing.csv there, "
          "and what the study's `output` asks for: report.html, a page with charts (html: true), and timelines/, "
          "a step of every run for ui.perfetto.dev (perfetto: {ranks: 8})")
      ->type_name("FOLDER");
  add_format(*command, options.format);
  add_count(*command, "--jobs", options.jobs, "Threads (default: one a processor); results do not depend on it");
  command->add_flag("--resume", options.resume,
                    "Take the runs that an earlier execution has finished from the folder of --out");
  command->footer(
      "Examples:\n  hdpsim study configs/studies/bytescale-7b.yaml --set data.steps=5 --out results\n"
      "  hdpsim study configs/studies/tiny.yaml --set output.html=true --set output.perfetto=true --out tiny");
}

}  // namespace hdpsim::app
