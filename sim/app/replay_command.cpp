#include <fmt/format.h>

#include "sim/app/command.h"
#include "sim/app/damage_notes.h"
#include "sim/app/progress.h"
#include "sim/app/signals.h"
#include "sim/base/growing_file.h"
#include "sim/base/output_folder.h"
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
  std::string out;
  Format format = Format::table;
  std::int64_t jobs = static_cast<std::int64_t>(one_a_processor());
  bool resume = false;
};

int interrupted(const ReplayOptions& options, const Study& study) {
  note(fmt::format("{}: stopped before its steps were finished{}", study.name,
                   options.out.empty() ? "" : fmt::format("; --resume goes on with those kept in {}", options.out)));
  return exit_by_signal + stop_signal();
}

void print_row(const StepTable& table, const StepRow& row) {
  if (row.step == 0 && row.plan == 0) print(StepTable::header(), Format::csv);
  print(table.line(row), Format::csv);
}

int replay_command(const ReplayOptions& options, const Session& session) {
  if (options.resume && options.out.empty())
    throw InputError("--resume needs the folder of --out, where steps are kept");
  Catalog catalog(session.data_folder);
  catalog.keep_order_of_files();
  Study study = load_study(options.file, overrides_of(options.choice, options.overrides), catalog);
  const StudyPoint& point = choose(study, options.choice);
  require_simulable(point);
  if (study.tunes_baseline) note(fmt::format("replay compares with {} on the study's mesh", *study.compare_to));
  catch_stop_signals();
  const auto stopped = [] { return stop_signal() != 0; };
  const auto refused = leave_out_refused(study, point, static_cast<std::size_t>(options.jobs), stopped);
  if (!refused) return interrupted(options, study);
  for (const RefusedPlan& each : *refused) {
    if (options.format != Format::table) note(refusal_text(each));
  }
  std::optional<OutputFolder> folder;
  if (!options.out.empty()) {
    folder.emplace(options.out, OutputUse{"study", session.command_line, replay_file_names(), options.resume},
                   &session.inputs);
    if (!options.resume) folder->remove_earlier();
    for (const std::string& name : replay_journal_names()) (void)folder->file(name);
  }

  const StepTable table(plan_names(study));
  std::optional<ReplayResult> result;
  {
    ProgressDisplay display;
    const ReplayRun run{.steps = point.spec.steps,
                        .jobs = static_cast<std::size_t>(options.jobs),
                        .folder = options.out,
                        .refused = *refused,
                        .resume = options.resume,
                        .damaged = damage_notes("simulated again"),
                        .version = version,
                        .stop = stopped,
                        .report = [&](const ReplayProgress& progress) { display.show(progress); },
                        .row =
                            [&](const StepRow& row) {
                              if (options.format == Format::csv) print_row(table, row);
                            }};
    result =
        resumable(options.out, GrowingFile::temporary("steps.csv").string(), [&] { return replay(study, point, run); });
  }
  if (!result) return interrupted(options, study);
  result->best_static = best_static_share(study, point, catalog, static_cast<std::size_t>(options.jobs), stopped);
  if (stopped()) return interrupted(options, study);
  if (folder) {
    folder->remove_earlier();
    write_replay(*folder, *result, study, version);
    tell_removed(*folder);
  }
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
  command
      .add_option("--out", options.out,
                  "Write steps.csv and windows.csv there, as they come, and replay.json, replay.html and study.yaml")
      .type_name("FOLDER");
  add_format(command, options.format);
  add_count(command, "--jobs", options.jobs, "Threads (default: one a processor); results do not depend on it");
  command.add_flag("--resume", options.resume,
                   "Go on after the last step in the folder of --out; with more --steps the replay becomes longer");
  command.footer(
      "csv prints one row a plan and step while they are simulated. Memory does not grow with the number of steps.\n"
      "Examples:\n"
      "  hdpsim replay configs/studies/replay.yaml --out replay\n"
      "  hdpsim replay configs/studies/replay.yaml --trace conversation_trace.jsonl --set replay.threshold=1.5\n"
      "  hdpsim replay configs/studies/tiny.yaml --point 1 --steps 500 --plan static --plan hdp-balance");
}

}  // namespace hdpsim::app
