#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <filesystem>

#include "sim/app/command.h"
#include "sim/app/finished_runs.h"
#include "sim/app/progress.h"
#include "sim/app/signals.h"
#include "sim/base/quantity_text.h"
#include "sim/decide/decision_report.h"
#include "sim/results/notes.h"
#include "sim/run/ordered_work.h"

namespace hdpsim::app {
namespace {

struct DecideOptions {
  std::string path;
  std::vector<std::string> overrides;
  std::int64_t tokens = 0;
  double days = 0;  // 0: none, as with an empty date
  std::string by;
  std::string from;
  std::int64_t most_gpus = 0;
  std::string prices;
  std::string out;
  Format format = Format::table;
};

std::chrono::sys_days date_of(const std::string& text, const char* option) {
  int year = 0;
  unsigned month = 0;
  unsigned day = 0;
  char more = 0;
  const bool is_read = std::sscanf(text.c_str(), "%4d-%2u-%2u%c", &year, &month, &day, &more) == 3;
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month), std::chrono::day(day)};
  if (!is_read || !date.ok()) {
    throw InputError(fmt::format("{}: '{}' is no date", option, text),
                     "write the year, the month and the day: 2027-03-01");
  }
  return date;
}

// The days in which the training has to end; empty: nothing is searched for.
std::optional<double> days_of(const DecideOptions& options) {
  if (options.by.empty()) {
    if (!options.from.empty()) throw InputError("--from goes with --by");
    return options.days > 0 ? std::optional(options.days) : std::nullopt;
  }
  if (options.days > 0) throw InputError("--by and --days are two ways to say the same: name one");
  const auto from = options.from.empty() ? std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now())
                                         : date_of(options.from, "--from");
  const auto days = (date_of(options.by, "--by") - from).count();
  if (days <= 0) throw InputError(fmt::format("--by {} leaves no day to train", options.by));
  return static_cast<double>(days);
}

std::optional<std::vector<PlanSizes>> searched(const Study& study, const ClusterGoal& goal, const StudyPrices& prices,
                                               Catalog& catalog) {
  if (study.points.size() > 1) {
    note(fmt::format("searched is for point 0 of {}, {}; --set chooses another", study.points.size(),
                     point_text(study.run_info(0, 0))));
  }
  ProgressDisplay display;
  return search_clusters(
      study, goal, prices, catalog,
      {.jobs = one_a_processor(), .version = version, .stop = is_stopped, .report = [&](const Progress& progress) {
         display.show(progress);
       }});
}

std::string formatted(const DecisionResult& result, const Study& study, Format format) {
  switch (format) {
    case Format::table:
      break;
    case Format::csv:
      return decision_csv(result);
    case Format::json:
      return decision_json(result, study.resolved, version);
  }
  return decision_table(result);
}

void write_decision(const DecideOptions& options, const Session& session, const DecisionResult& result,
                    const Study& study) {
  OutputFolder folder(options.out,
                      {"decision", session.command_line, {"decision.json", "decision.csv", "decision.html"}},
                      &session.inputs);
  folder.remove_earlier();
  folder.write("decision.csv", decision_csv(result));
  folder.write("decision.html", decision_page(result));
  folder.write("decision.json", decision_json(result, study.resolved, version));
  tell_removed(folder);
}

int decide_command(const DecideOptions& options, const Session& session) {
  const std::optional<double> days = days_of(options);
  if (!days && options.most_gpus > 0) throw InputError("--most-gpus goes with --days or --by");
  const bool is_folder = std::filesystem::is_directory(options.path);
  const std::filesystem::path folder = is_folder ? options.path : "";
  const std::string file = is_folder ? (folder / "study.yaml").string() : options.path;
  Catalog catalog(session.data_folder);
  const Study study = load_study(file, options.overrides, catalog);
  DecisionResult result = asked_decision(study, static_cast<double>(options.tokens), days, options.prices);

  catch_stop_signals();
  if (days) {
    const std::optional<std::int64_t> most = options.most_gpus > 0 ? std::optional(options.most_gpus) : std::nullopt;
    auto found = searched(study, {result.tokens, *days, most}, result.prices, catalog);
    if (!found) return stopped_exit();
    result.search = std::move(*found);
  } else {
    auto runs = finished_runs(study, folder);
    if (!runs) return stopped_exit();
    result.decisions = decisions_of(study, std::move(*runs), result.tokens, result.prices);
  }
  if (!options.out.empty()) write_decision(options, session, result, study);
  print(formatted(result, study, options.format), options.format);
  return 0;
}

}  // namespace

void add_decide_command(Command app, Session& session) {
  const Command command = app.add_subcommand(
      "decide", "Days, energy and money to train so many tokens, and the smallest cluster that is in time");
  DecideOptions& options = add_command(command, session, decide_command);
  command.add_option("STUDY", options.path, "A study, or the folder that hdpsim study --out has written")
      .required()
      .existing_path();
  add_count(command, "--tokens", options.tokens, "Tokens to train: 2T").required();
  command
      .add_option(
          "--days",
          [&options](const std::string& text) {
            const Parsed<double> seconds = parse_seconds(text + " d");
            if (!seconds.value || !(*seconds.value > 0)) throw WrongValue("write a positive number of days: 30");
            options.days = *seconds.value / 86400;
          },
          "Search for the fewest GPUs with which each plan of the first point is done in so many days")
      .type_name("DAYS");
  command.add_option("--by", options.by, "The same for a day by which it is done: 2027-03-01").type_name("DATE");
  command.add_option("--from", options.from, "The day on which it begins, for --by (default: today, UTC)")
      .type_name("DATE");
  add_count(command, "--most-gpus", options.most_gpus, "The largest size that is searched");
  command.add_option("--prices", options.prices, "A file with prices and powers by the name of a cluster or device")
      .existing_file();
  add_set(command, options.overrides, "the study");
  command.add_option("--out", options.out, "Write decision.json, decision.csv and a page, decision.html, there")
      .type_name("FOLDER");
  add_format(command, options.format);
  command.footer(
      "A file of prices: {hardware: {h100-rail: {price: 2.10 USD/GPU-hour, node_power: 10.2 kW}}, pue: 1.2}.\n"
      "`hdpsim keys --of prices` has its keys. Of a folder, runs that the study has finished are not simulated again.\n"
      "Examples:\n"
      "  hdpsim decide configs/studies/tiny.yaml --tokens 100G\n"
      "  hdpsim decide configs/studies/tiny.yaml --tokens 100G --days 30 --format json");
}

}  // namespace hdpsim::app
