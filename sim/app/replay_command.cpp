#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <thread>
#include <utility>

#include "sim/app/command.h"
#include "sim/app/progress.h"
#include "sim/app/signals.h"
#include "sim/app/study_choice.h"
#include "sim/replay/replay_report.h"
#include "sim/report/output_file.h"

namespace hdpsim::app {
namespace {

struct Options {
  std::string file;
  std::string trace;
  std::string column;
  std::vector<std::string> plans;
  std::vector<std::string> overrides;
  std::int64_t steps = 0;  // 0: as the trace or the study says
  std::int64_t point = -1;
  std::string out;
  Format format = Format::table;
  std::int64_t jobs = std::max(1U, std::thread::hardware_concurrency());
  bool resume = false;
};

// In quotes, so that nothing in it means anything to YAML.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result.append(c == '\'' ? 2 : 1, c);
  return result + "'";
}

std::vector<std::string> overrides_of(const Options& options) {
  std::vector<std::string> all;
  if (!options.trace.empty()) {
    const std::string column = options.column.empty() ? "" : fmt::format(", column: {}", quoted(options.column));
    all.push_back(fmt::format("data.lengths={{file: {}{}}}", quoted(options.trace), column));
  }
  all.insert(all.end(), options.overrides.begin(), options.overrides.end());
  return all;
}

StudyPoint& point_of(Study& study, const Options& options) {
  if (options.point < 0 && study.points.size() > 1) {
    throw InputError(fmt::format("a replay has one point, the study has {}", study.points.size()),
                     "choose one with --point, or leave the sweep out with --set sweep={}");
  }
  const StudyPoint& chosen = chosen_point(study, std::max<std::int64_t>(0, options.point));
  return study.points[static_cast<std::size_t>(&chosen - study.points.data())];
}

template <class Item>
void keep_only(std::vector<Item>& items, const std::vector<std::size_t>& kept) {
  std::vector<Item> result;
  for (const std::size_t index : kept) result.push_back(std::move(items[index]));
  items = std::move(result);
}

// The plans that --plan names, in the order of the study; all of them if it names none.
void choose_plans(Study& study, const std::vector<std::string>& names) {
  if (names.empty()) return;
  std::set<std::size_t> chosen;
  for (const std::string& name : names) chosen.insert(chosen_plan(study, name));
  const std::vector<std::size_t> kept(chosen.begin(), chosen.end());
  keep_only(study.plans, kept);
  keep_only(study.resolved.find("plans")->items, kept);
  for (StudyPoint& point : study.points) keep_only(point.planners, kept);
  const auto is_baseline = [&](const StudyPlan& plan) { return plan.name == study.compare_to; };
  if (std::none_of(study.plans.begin(), study.plans.end(), is_baseline)) {
    study.compare_to.reset();
    std::erase_if(study.resolved.entries, [](const Value::Entry& entry) { return entry.key == "compare_to"; });
  }
}

// A trace that was named is used once; otherwise the study says.
std::int64_t steps_of(const StudyPoint& point, const Options& options) {
  if (options.steps > 0) return options.steps;
  if (options.trace.empty()) return point.spec.steps;
  return point.batches->lap().value_or(point.spec.steps);
}

int interrupted(const Options& options, const Study& study) {
  note(fmt::format("{}: stopped before its steps were finished{}", study.name,
                   options.out.empty() ? "" : fmt::format("; --resume goes on with those kept in {}", options.out)));
  return exit_by_signal + stop_signal();
}

void write_result(const std::filesystem::path& folder, const ReplayResult& result, const Study& study) {
  write_file(folder / "study.yaml", to_yaml(study.resolved));
  write_file(folder / "replay.html", replay_page(result));
  write_file(folder / "replay.json", replay_json(result, study.resolved, version));
}

int run_command(const Options& options, const Session& session) {
  if (options.resume && options.out.empty())
    throw InputError("--resume needs the folder of --out, where steps are kept");
  if (options.trace.empty() && !options.column.empty())
    throw InputError("--column needs a trace", "name it with --trace");
  Catalog catalog(session.data_folder);
  Study study = load_study(options.file, overrides_of(options), catalog);
  choose_plans(study, options.plans);
  StudyPoint& point = point_of(study, options);
  point.spec.steps = steps_of(point, options);
  study.resolved.find("data")->set("steps", Value::scalar(std::to_string(point.spec.steps)));
  if (!options.out.empty()) prepare_folder(options.out);

  catch_stop_signals();
  std::optional<ReplayResult> result;
  {
    ProgressDisplay display;
    const ReplayRun run{.steps = point.spec.steps,
                        .jobs = static_cast<std::size_t>(options.jobs),
                        .folder = options.out,
                        .resume = options.resume,
                        .version = version,
                        .stop = [] { return stop_signal() != 0; },
                        .report = [&](const ReplayProgress& progress) { display.show(progress); },
                        .rows =
                            [&](const std::string& line) {
                              if (options.format == Format::csv) print(line);
                            }};
    result = replay(study, point, run);
  }
  if (!result) return interrupted(options, study);
  if (!options.out.empty()) write_result(options.out, *result, study);
  if (options.format == Format::table) print(replay_table(*result));
  if (options.format == Format::json) print(replay_json(*result, study.resolved, version));
  return 0;
}

}  // namespace

void add_replay_command(CLI::App& app, Session& session) {
  CLI::App* command =
      app.add_subcommand("replay", "Run the plans of a study over a long trace of lengths, step by step");
  Options& options = add_command(*command, session, run_command);
  command->add_option("STUDY", options.file, "The study, a YAML file; `replay` in it says what is looked for")
      ->required();
  command
      ->add_option("--trace", options.trace,
                   "Lengths instead of those of the study, in any format of traces/README.md: plain lengths, Mooncake, "
                   "Azure LLM inference, BurstGPT, ServeGen, vidur, ...")
      ->type_name("FILE");
  command->add_option("--column", options.column, "Column or columns of the trace that hold the lengths: a, or a+b")
      ->type_name("NAME");
  add_count(*command, "--steps", options.steps,
            "Steps (default: until the trace of --trace has been used once, otherwise data.steps of the study)");
  command->add_option("--plan", options.plans, "Only this plan of the study; may be given several times")
      ->type_name("NAME")
      ->allow_extra_args(false);
  add_count(*command, "--point", options.point, "Which point, if the study has a sweep, counted from 0", 0);
  command->add_option("--set", options.overrides, "Override a value of the study; may be given several times")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command
      ->add_option("--out", options.out,
                   "Write steps.csv and windows.csv there, as they come, and replay.json, replay.html and study.yaml")
      ->type_name("FOLDER");
  add_format(*command, options.format);
  add_count(*command, "--jobs", options.jobs, "Threads (default: one a processor); results do not depend on it");
  command->add_flag("--resume", options.resume,
                    "Go on after the last step in the folder of --out; with more --steps the replay becomes longer");
  command->footer(
      "csv prints one row a plan and step while they are simulated. Memory does not grow with the number of steps.\n"
      "Examples:\n"
      "  hdpsim replay configs/studies/replay.yaml --out replay\n"
      "  hdpsim replay configs/studies/replay.yaml --trace conversation_trace.jsonl --set replay.threshold=1.5\n"
      "  hdpsim replay configs/studies/tiny.yaml --point 1 --steps 500 --plan static --plan hdp-balance");
}

}  // namespace hdpsim::app
