#include <fmt/format.h>

#include "sim/app/command.h"
#include "sim/app/production_replay.h"
#include "sim/app/resumable.h"
#include "sim/replay/replay_choice.h"
#include "sim/replay/replay_report.h"
#include "sim/run/ordered_work.h"
#include "sim/run/step.h"

namespace hdpsim::app {
namespace {

struct ReplayOptions {
  std::string file;
  ReplayChoice choice;
  std::vector<std::string> overrides;
  std::vector<std::string> without;
  bool ablate = false;
  ResumeOptions keeping;
  Format format = Format::table;
  std::int64_t jobs = static_cast<std::int64_t>(one_a_processor());
};

constexpr char aim[] = "its steps were finished";

void print_row(const StepTable& table, const StepRow& row) {
  if (row.step == 0 && row.plan == 0) print(StepTable::header(), Format::csv);
  print(table.line(row), Format::csv);
}

int replay_command(const ReplayOptions& options, const Session& session) {
  require_folder(options.keeping);
  Catalog catalog(session.data_folder);
  catalog.keep_order_of_files();
  Study study = load_study(options.file, overrides_of(options.choice, options.overrides), catalog, options.without);
  const StudyPoint& point = choose(study, options.choice);
  const auto jobs = static_cast<std::size_t>(options.jobs);
  if (study.production) {
    return replay_production({.file = options.file,
                              .choice = options.choice,
                              .overrides = options.overrides,
                              .without = options.without,
                              .ablate = options.ablate,
                              .keeping = options.keeping,
                              .format = options.format,
                              .jobs = jobs},
                             study, point, catalog, session);
  }
  if (options.ablate) throw InputError("--ablate goes with a study that has `production`");
  require_simulable(point);
  if (study.tunes_baseline) note(fmt::format("replay compares with {} on the study's mesh", *study.compare_to));
  catch_stop_signals();
  const auto refused = leave_out_refused(study, point, jobs, is_stopped);
  if (!refused) return stopped_before(options.keeping, study.name, aim);
  for (const RefusedPlan& each : *refused) {
    if (options.format != Format::table) note(refusal_text(each));
  }
  Resumable work(options.keeping, session,
                 {.kind = "study", .results = replay_file_names(), .growing = replay_growing_names()});
  const StepTable table(plan_names(study));
  auto result = work.run([&](ProgressDisplay& display) {
    return replay(study, point,
                  {.steps = point.spec.steps,
                   .jobs = jobs,
                   .kept = work.kept(),
                   .refused = *refused,
                   .version = version,
                   .stop = is_stopped,
                   .report = [&](const ReplayProgress& progress) { display.show(progress); },
                   .row =
                       [&](const StepRow& row) {
                         if (options.format == Format::csv) print_row(table, row);
                       }});
  });
  if (result) result->best_static = best_static_share(study, point, catalog, jobs, is_stopped);
  if (!result || is_stopped()) return stopped_before(options.keeping, study.name, aim);
  work.write([&](OutputFolder& folder) { write_replay(folder, *result, study, version); });
  if (options.format == Format::table) print(replay_table(*result));
  if (options.format == Format::json) print(replay_json(*result, study.resolved, version), Format::json);
  return 0;
}

}  // namespace

void add_replay_command(Command app, Session& session) {
  const Command command =
      app.add_subcommand("replay", "Run the plans of a study over a long trace of lengths, step by step");
  ReplayOptions& options = add_command(command, session, replay_command);
  command.add_option("STUDY", options.file, "The study, a YAML file; `replay` in it says what is looked for")
      .required();
  command
      .add_option("--lengths,--trace", options.choice.trace,
                  "Lengths instead of those of the study, in any format of traces/README.md: plain lengths, Mooncake, "
                  "Azure LLM inference, BurstGPT, ServeGen, vidur, ...")
      .type_name("FILE");
  command
      .add_option("--column", options.choice.column, "Column or columns of the trace that hold the lengths: a, or a+b")
      .type_name("NAME");
  add_count(command, "--steps", options.choice.steps,
            "Steps (default: until the trace of --trace has been used once, otherwise data.steps of the study)");
  command.add_option("--plan", options.choice.plans, "Only this plan of the study; may be given several times")
      .type_name("NAME")
      .one_at_a_time();
  add_count(command, "--point", options.choice.point, "Which point, if the study has a sweep, counted from 0", 0);
  add_set(command, options.overrides, "the study");
  add_without(command, options.without);
  command.add_flag("--ablate", options.ablate,
                   "Of a study with `production`: what comes out without each of its mechanisms, too");
  command
      .add_option(
          "--out", options.keeping.out,
          "Write steps.csv and windows.csv there, as they come, and replay.json, replay.html and study.yaml; of "
          "a study with `production` production.json, .csv and .html, events.csv and study.yaml")
      .type_name("FOLDER");
  add_format(command, options.format);
  add_count(command, "--jobs", options.jobs, "Threads (default: one a processor); results do not depend on it");
  command.add_flag("--resume", options.keeping.resume,
                   "Go on after the last step in the folder of --out; with more --steps the replay becomes longer");
  command.footer(
      "csv prints one row a plan and step while they are simulated. Memory does not grow with the number of steps.\n"
      "A study with `production` is run for its hours, with failures, checkpoints and devices that become slow.\n"
      "Examples:\n"
      "  hdpsim replay configs/studies/replay.yaml --out replay\n"
      "  hdpsim replay configs/studies/replay.yaml --trace conversation_trace.jsonl --set replay.threshold=1.5\n"
      "  hdpsim replay configs/studies/tiny.yaml --point 1 --steps 500 --plan static --plan hdp-balance");
}

}  // namespace hdpsim::app
