#include <fmt/format.h>

#include "sim/app/command.h"
#include "sim/app/damage_notes.h"
#include "sim/app/progress.h"
#include "sim/app/signals.h"
#include "sim/base/growing_file.h"
#include "sim/base/output_folder.h"
#include "sim/run/ordered_work.h"
#include "sim/study/lengths.h"
#include "sim/tune/tune_report.h"

namespace hdpsim::app {
namespace {

struct TuneOptions {
  std::string file;
  std::vector<std::string> overrides;
  LengthsOptions lengths;
  std::string out;
  Format format = Format::table;
  std::int64_t jobs = static_cast<std::int64_t>(one_a_processor());
  bool resume = false;
};

std::string formatted(const TuneResult& result, const Study& study, Format format) {
  switch (format) {
    case Format::table:
      break;
    case Format::csv:
      return tune_csv(result, study.tune.price);
    case Format::json:
      return tune_json(result, study.tune.price, study.resolved, version);
  }
  return tune_table(result, study.tune.price);
}

int interrupted(const TuneOptions& options, const Study& study) {
  note(fmt::format("{}: stopped before the best candidate was found{}", study.name,
                   options.out.empty() ? "" : fmt::format("; --resume goes on with what is in {}", options.out)));
  return exit_by_signal + stop_signal();
}

int tune_command(const TuneOptions& options, const Session& session) {
  if (options.resume && options.out.empty())
    throw InputError("--resume needs the folder of --out, where candidates are kept");
  Catalog catalog(session.data_folder);
  const std::vector<std::string> overrides =
      with_lengths(options.lengths.file, options.lengths.column, options.overrides);
  const Study study = load_study(options.file, overrides, catalog);
  std::optional<OutputFolder> folder;
  if (!options.out.empty()) {
    folder.emplace(options.out, OutputUse{"study", session.command_line, tuning_file_names(), options.resume},
                   &session.inputs);
    if (!options.resume) folder->remove_earlier();
    for (const std::string& name : tuning_journal_names()) (void)folder->file(name);
  }
  catch_stop_signals();
  Diagnostics none;
  const Value root = tuning_root(load_document(options.file, none), overrides);
  std::optional<TuneResult> result;
  {
    ProgressDisplay display;
    const TuneRun run{.jobs = static_cast<std::size_t>(options.jobs),
                      .folder = options.out,
                      .resume = options.resume,
                      .damaged = damage_notes("simulated again"),
                      .version = version,
                      .stop = [] { return stop_signal() != 0; },
                      .report = [&](const TuneProgress& progress) { display.show(progress); }};
    result = resumable(options.out, GrowingFile::temporary("search.jsonl").string(),
                       [&] { return tune(study, root, catalog, run); });
  }
  if (!result) return interrupted(options, study);
  if (folder) {
    folder->remove_earlier();
    write_tuning(*folder, *result, study, version);
    tell_removed(*folder);
  }
  print(formatted(*result, study, options.format), options.format);
  return 0;
}

}  // namespace

void add_tune_command(Command app, Session& session) {
  const Command command = app.add_subcommand("tune", "Search for the fastest mesh and plan for the work of a study");
  TuneOptions& options = add_command(command, session, tune_command);
  command
      .add_option("STUDY", options.file, "The study, a YAML file; `tune` in it names the space, the objective, a price")
      .required();
  add_set(command, options.overrides, "the study");
  add_lengths(command, options.lengths);
  command
      .add_option("--out", options.out,
                  "Write best.yaml there, a study with the best candidate, and candidates.csv, tune.json, a page "
                  "(tune.html) and "
                  "study.yaml; what is simulated goes into search.jsonl, as it comes")
      .type_name("FOLDER");
  add_format(command, options.format);
  add_count(command, "--jobs", options.jobs, "Threads (default: one a processor); results do not depend on it");
  command.add_flag("--resume", options.resume,
                   "Go on with what an earlier tuning has simulated in the folder of --out");
  command.footer(
      "Without `tune.space` it chooses tp, pp, schedule, placement, capacity, recomputation, and the plans of the "
      "study\n"
      "with and without offload.\n"
      "Examples:\n"
      "  hdpsim tune configs/studies/tune.yaml --out tuned\n"
      "  hdpsim study tuned/best.yaml\n"
      "  hdpsim tune configs/studies/tune.yaml --set 'tune.space={cluster.gpus: [32, 64]}' --set tune.objective=cost");
}

}  // namespace hdpsim::app
