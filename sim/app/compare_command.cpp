#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "sim/app/command.h"
#include "sim/app/progress.h"
#include "sim/app/signals.h"
#include "sim/base/output_folder.h"
#include "sim/compare/comparison_output.h"
#include "sim/compare/step_comparison.h"
#include "sim/compare/timeline_sets.h"
#include "sim/compare/trace_comparison.h"
#include "sim/profiler/recording.h"
#include "sim/study/study.h"

namespace hdpsim::app {
namespace {

/// `hdpsim compare TRACE... STUDY`: a training that was traced beside the simulation of a study of it.
struct CompareTraceOptions {
  std::string plan;              ///< Empty: the study's first.
  std::int64_t trace_steps = 0;  ///< Steps of a trace that marks none; 0: one.
  std::vector<std::string> set;
};

struct CompareOptions {
  std::vector<std::string> paths;
  Format format = Format::table;
  std::string out;
  CompareTraceOptions trace;
};

Comparison comparison_of(const TimelineSet& set) {
  std::vector<Comparison> steps;
  for (const StepFiles& files : set.steps) {
    StepComparison step(files.predicted.string(), load_timeline(files.predicted));
    for (const std::filesystem::path& measured : files.measured) step.add(measured.string(), load_timeline(measured));
    steps.push_back(step.result());
  }
  Comparison mean = mean_of(steps);
  if (!set.name.empty()) mean.plan = set.name;
  return mean;
}

std::string formatted(const std::vector<Comparison>& plans, Format format) {
  switch (format) {
    case Format::table:
      break;
    case Format::csv:
      return families_csv(plans);
    case Format::json:
      return comparison_json(plans);
  }
  return comparison_table(plans);
}

void write_comparison(OutputFolder& folder, const std::string& title, const std::vector<Comparison>& plans) {
  folder.remove_earlier();
  folder.write("comparison.json", comparison_json(plans));
  folder.write("families.csv", families_csv(plans));
  folder.write("ranks.csv", compared_ranks_csv(plans));
  folder.write("comparison.html", comparison_page(title, plans));
}

bool is_study(const std::string& path) {
  const std::filesystem::path extension = std::filesystem::path(path).extension();
  return extension == ".yaml" || extension == ".yml";
}

Recording read_traces(const std::vector<std::string>& paths, const StudyPoint& point) {
  RecordingOptions reading;
  reading.gpus_per_node = point.spec.cluster.devices_per_node;
  ProgressDisplay display;
  reading.report = [&display](double share) { display.show(ReadingProgress{share}); };
  return read_recording({paths.begin(), paths.end() - 1}, reading);
}

// The paths with the study last, if one of several is a study: the others are traces of a profiler. Otherwise empty.
std::vector<std::string> traces_and_study(std::vector<std::string> paths) {
  std::stable_partition(paths.begin(), paths.end(), [](const std::string& path) { return !is_study(path); });
  const bool one_study = paths.size() >= 2 && is_study(paths.back()) && !is_study(paths[paths.size() - 2]);
  return one_study ? paths : std::vector<std::string>{};
}

void add_compare_trace(Command command, CompareTraceOptions& options) {
  command.add_option("--plan", options.plan, "For a trace: the plan of the study (default: its first)")
      .type_name("PLAN");
  add_count(command, "--trace-steps", options.trace_steps,
            "For a trace in which no steps are marked: how many it holds (default: 1)");
  add_set(command, options.set, "the study");
}

// Simulates all steps of the first point of the study, the last of the paths, and prints their mean beside the traces.
int compare_trace(const std::vector<std::string>& paths, const CompareTraceOptions& options, Format format,
                  const Session& session) {
  Catalog catalog(session.data_folder);
  const Study study = load_study(paths.back(), options.set, catalog);
  const std::size_t plan = options.plan.empty() ? 0 : chosen_plan(study, options.plan);
  if (study.points.size() > 1) {
    note(fmt::format("the study has {} points: compared is the first; --set chooses", study.points.size()));
  }
  const StudyPoint& point = study.points.front();
  const Recording recording = read_traces(paths, point);
  catch_stop_signals();
  const std::optional<Breakdown> breakdown = mean_breakdown(point, plan, is_stopped);
  if (!breakdown) return stopped_exit();
  TraceComparison comparison = compare_with_traces(
      recording, *breakdown, options.trace_steps > 0 ? std::optional(options.trace_steps) : std::nullopt);
  comparison.plan = study.plans[plan].name;
  print(formatted(comparison, format), format);
  return 0;
}

int compare_command(const CompareOptions& options, const Session& session) {
  if (const auto paths = traces_and_study(options.paths); !paths.empty()) {
    if (!options.out.empty()) throw InputError("--out is for timelines: of a trace and a study only the text is known");
    return compare_trace(paths, options.trace, options.format, session);
  }
  if (!options.trace.plan.empty() || options.trace.trace_steps > 0 || !options.trace.set.empty()) {
    throw InputError("--plan, --trace-steps and --set are for a trace of PyTorch's profiler compared with a study",
                     "name the traces, then the study: hdpsim compare trace.json.gz study.yaml");
  }
  std::vector<Comparison> plans;
  for (const TimelineSet& set : find_timelines(options.paths)) plans.push_back(comparison_of(set));
  const std::string title = fmt::format("Predicted and measured: {}", options.paths[0]);
  if (!options.out.empty()) {
    OutputFolder folder(
        options.out,
        {"comparison", session.command_line, {"comparison.json", "families.csv", "ranks.csv", "comparison.html"}},
        &session.inputs);
    write_comparison(folder, title, plans);
  }
  print(formatted(plans, options.format), options.format);
  return 0;
}

}  // namespace

void add_compare_command(Command app, Session& session) {
  const Command command = app.add_subcommand(
      "compare", "Compare predictions with measurements: timelines by instruction, or a trace with a study");
  CompareOptions& options = add_command(command, session, compare_command);
  command
      .add_option(
          "PATH", options.paths,
          "The folder of hdpsim execute; or a predicted and a measured timeline; or more timelines of a plan; or "
          "traces of PyTorch's profiler and a study of the same training")
      .required()
      .existing_path();
  add_format(command, options.format);
  add_compare_trace(command, options.trace);
  command.add_option("--out", options.out, "Write comparison.json, families.csv, ranks.csv and comparison.html there")
      .type_name("FOLDER");
  command.footer(
      "csv is the table of families. The noise floor is what the runs of a step differ by: the medians of its even "
      "and\n"
      "of its odd runs, subtracted; it is known for steps that were executed with --repeat.\n"
      "Example:\n"
      "  hdpsim execute configs/studies/real.yaml --plan hdp-balance --repeat 5 --out real\n"
      "  hdpsim compare real --out difference\n"
      "  hdpsim compare rank0.json.gz rank1.json.gz my-study.yaml --plan static");
}

}  // namespace hdpsim::app
