#include <fmt/format.h>

#include "sim/app/command.h"
#include "sim/app/resumable.h"
#include "sim/run/ordered_work.h"
#include "sim/study/lengths.h"
#include "sim/tune/tune_report.h"

namespace hdpsim::app {
namespace {

struct TuneOptions {
  std::string file;
  std::vector<std::string> overrides;
  LengthsOptions lengths;
  ResumeOptions keeping;
  Format format = Format::table;
  std::int64_t jobs = static_cast<std::int64_t>(one_a_processor());
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

int tune_command(const TuneOptions& options, const Session& session) {
  require_folder(options.keeping);
  Catalog catalog(session.data_folder);
  const std::vector<std::string> overrides =
      with_lengths(options.lengths.file, options.lengths.column, options.overrides);
  const Study study = load_study(options.file, overrides, catalog);
  Diagnostics none;
  const Value root = tuning_root(load_document(options.file, none), overrides);
  Resumable work(options.keeping, session, {.kind = "study", .results = tuning_file_names()});
  const auto result = work.run([&](ProgressDisplay& display) {
    return tune(study, root, catalog,
                {.jobs = static_cast<std::size_t>(options.jobs),
                 .kept = work.kept(),
                 .version = version,
                 .stop = is_stopped,
                 .clock = [&] { return display.seconds(); },
                 .report = [&](const TuneProgress& progress) { display.show(progress); }});
  });
  if (!result) return stopped_before(options.keeping, study.name, "the best candidate was found");
  work.write([&](OutputFolder& folder) { write_tuning(folder, *result, study, version); });
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
      .add_option("--out", options.keeping.out,
                  "Write best.yaml there, a study with the best candidate, and candidates.csv, tune.json, a page "
                  "(tune.html) and "
                  "study.yaml; what is simulated goes into journal.jsonl, as it comes")
      .type_name("FOLDER");
  add_format(command, options.format);
  add_count(command, "--jobs", options.jobs, "Threads (default: one a processor); results do not depend on it");
  command.add_flag("--resume", options.keeping.resume,
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
