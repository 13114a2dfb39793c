#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "sim/app/command.h"
#include "sim/app/progress.h"
#include "sim/app/signals.h"
#include "sim/base/output_folder.h"
#include "sim/compare/coarse_timelines.h"
#include "sim/compare/comparison_output.h"
#include "sim/compare/course_output.h"
#include "sim/compare/plan_prediction.h"
#include "sim/compare/result_comparison.h"
#include "sim/compare/step_comparison.h"
#include "sim/compare/timeline_sets.h"
#include "sim/compare/trace_comparison.h"
#include "sim/compare/trace_course.h"
#include "sim/profiler/recording.h"
#include "sim/profiler/training_range.h"
#include "sim/study/study.h"

namespace hdpsim::app {
namespace {

/// `hdpsim compare TRACE... STUDY`: a training that was traced beside the simulation of a study of it.
struct CompareTraceOptions {
  std::string plan;              ///< Of the study, empty: its first; or the file of the plan that was traced.
  std::int64_t step = -1;        ///< Of traces that mark their steps; -1: the first that all have.
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
  reading.counts_operators = true;
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
  command
      .add_option("--plan", options.plan,
                  "For traces: the plan of the study (default: its first), or the file of the plan that they ran")
      .type_name("PLAN");
  add_count(command, "--step", options.step,
            "For traces whose ranges name steps: which one (default: the first that all have)", 0);
  add_count(command, "--trace-steps", options.trace_steps,
            "For a trace in which no steps are marked: how many it holds (default: 1)");
  add_set(command, options.set, "the study");
}

std::vector<StepTrace> read_step_traces(const std::vector<std::string>& paths) {
  std::vector<StepTrace> traces;
  ProgressDisplay display;
  const auto all = static_cast<double>(paths.size() - 1);
  for (std::size_t i = 0; i + 1 < paths.size(); ++i) {
    traces.push_back(read_step_trace(
        paths[i], [&](double share) { display.show(ReadingProgress{(static_cast<double>(i) + share) / all}); }));
  }
  return traces;
}

// The step that the traces ran: by the plan of a file, or as the study plans it.
PointStep traced_step(const Study& study, const StudyPoint& point, const std::string& plan,
                      std::optional<std::int64_t> step) {
  if (names_plan_file(plan)) return step_of_plan_file(plan, point);
  const std::size_t index = plan.empty() ? 0 : chosen_plan(study, plan);
  if (step.value_or(0) >= point.spec.steps) {
    throw InputError(fmt::format("the traces are of step {}, the study has steps 0 to {}", *step, point.spec.steps - 1),
                     "--plan FILE names the plan that the training ran");
  }
  Batch batch = point.batches_of(index).step(step.value_or(0));
  PointStep planned = point.planned(index, step.value_or(0), std::move(batch));
  planned.plan.policy = study.plans[index].name;
  return planned;
}

// Traces whose ranges name micro-batches, beside the simulation of the plan that they ran.
int compare_courses_of_traces(const std::vector<std::string>& paths, const CompareTraceOptions& options, Format format,
                              const Study& study, const StudyPoint& point) {
  const std::vector<StepTrace> traces = read_step_traces(paths);
  std::optional<std::int64_t> step = options.step >= 0 ? std::optional(options.step) : std::nullopt;
  if (!step && !names_plan_file(options.plan)) step = step_of_traces(traces, step);
  const PointStep planned = traced_step(study, point, options.plan, step);
  Diagnostics diagnostics;
  TracedCourse measured = course_of(traces, step.value_or(planned.plan.step), diagnostics);
  if (measured.course.step != planned.plan.step) {
    diagnostics.error({options.plan, 0, 0},
                      fmt::format("the plan is of step {}, --step is {}", planned.plan.step, measured.course.step));
  }
  CourseComparison comparison = compare_courses(predicted_course(planned), measured.course, diagnostics);
  diagnostics.throw_if_any();
  comparison.plan = planned.plan.policy;
  comparison.traces = std::ssize(traces);
  comparison.source = fmt::format("{} {} of {}", traces.size(), traces.size() == 1 ? "trace" : "traces",
                                  measured.is_of_host ? "CPUs" : "GPUs");
  comparison.notes.insert(comparison.notes.end(), measured.notes.begin(), measured.notes.end());
  if (names_plan_file(options.plan)) {
    if (std::string origin = other_origin(options.plan, study, point); !origin.empty()) {
      comparison.notes.push_back(std::move(origin));
    }
  }
  print(formatted(comparison, format), format);
  return 0;
}

// Of the first point of the study, the last of the paths: the step that the ranges of the traces name; without ranges
// the mean of all its steps.
int compare_trace(const std::vector<std::string>& paths, const CompareTraceOptions& options, Format format,
                  const Session& session) {
  Catalog catalog(session.data_folder);
  const Study study = load_study(paths.back(), options.set, catalog);
  if (study.points.size() > 1) {
    note(fmt::format("the study has {} points: compared is the first; --set chooses", study.points.size()));
  }
  const StudyPoint& point = study.points.front();
  if (std::any_of(paths.begin(), paths.end() - 1, has_training_ranges)) {
    return compare_courses_of_traces(paths, options, format, study, point);
  }
  if (names_plan_file(options.plan) || options.step >= 0) {
    throw InputError("no trace has ranges that name steps and micro-batches: --step and a file of a plan need them",
                     "hdpsim.torch writes them");
  }
  const std::size_t plan = options.plan.empty() ? 0 : chosen_plan(study, options.plan);
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

// One after the other: a step of a plan each.
int compare_coarse(const std::vector<TimelineSet>& sets, Format format) {
  const std::vector<CourseComparison> comparisons = compare_coarsely(sets);
  if (comparisons.size() > 1 && format != Format::table) {
    throw InputError("csv and json are of one step and run: name a prediction and what was measured of it");
  }
  std::string text;
  for (const CourseComparison& each : comparisons) {
    if (!text.empty()) text += "\n";
    text += formatted(each, format);
  }
  print(text, format);
  return 0;
}

std::string formatted(const std::vector<WrittenResult>& results, Format format) {
  switch (format) {
    case Format::table:
      break;
    case Format::csv:
      return results_csv(results);
    case Format::json:
      return results_json(results);
  }
  return results_table(results);
}

void refuse_trace_options(const CompareTraceOptions& trace) {
  if (trace.plan.empty() && trace.step < 0 && trace.trace_steps == 0 && trace.set.empty()) return;
  throw InputError(
      "--plan, --step, --trace-steps and --set are for a trace of PyTorch's profiler compared with a study",
      "name the traces, then the study: hdpsim compare trace.json.gz study.yaml");
}

// Folders of hdpsim study, the first of which the others are compared with.
int compare_results(const CompareOptions& options, const Session& session) {
  refuse_trace_options(options.trace);
  if (options.paths.size() == 1) {
    throw InputError(Position{options.paths[0], 0, 0}, "one result has nothing to be compared with",
                     "name the folders of two studies or more");
  }
  for (const std::string& path : options.paths) {
    if (holds_result(path)) continue;
    throw InputError(Position{path, 0, 0}, "this is no result of hdpsim study, and others of these paths are",
                     "compare what is of one kind");
  }
  const std::vector<WrittenResult> results = read_results(options.paths);
  if (!options.out.empty()) {
    OutputFolder folder(options.out,
                        {"comparison", session.command_line, {"results.json", "results.csv", "results.html"}},
                        &session.inputs);
    folder.remove_earlier();
    folder.write("results.json", results_json(results));
    folder.write("results.csv", results_csv(results));
    folder.write("results.html", results_page(results));
  }
  print(formatted(results, options.format), options.format);
  return 0;
}

int compare_command(const CompareOptions& options, const Session& session) {
  if (std::any_of(options.paths.begin(), options.paths.end(), holds_result)) return compare_results(options, session);
  if (const auto paths = traces_and_study(options.paths); !paths.empty()) {
    if (!options.out.empty()) throw InputError("--out is for timelines: of a trace and a study only the text is known");
    return compare_trace(paths, options.trace, options.format, session);
  }
  refuse_trace_options(options.trace);
  for (const std::string& path : options.paths) {
    if (options.paths.size() == 1 || !std::filesystem::is_directory(path)) continue;
    throw InputError(Position{path, 0, 0}, "there is no result.json in this folder",
                     "hdpsim study STUDY --out FOLDER writes it; a folder of hdpsim execute is compared alone");
  }
  const std::vector<TimelineSet> sets = find_timelines(options.paths);
  if (any_is_coarse(sets)) {
    if (!options.out.empty())
      throw InputError("--out is for timelines with instructions: of others only the text is known");
    return compare_coarse(sets, options.format);
  }
  std::vector<Comparison> plans;
  for (const TimelineSet& set : sets) plans.push_back(comparison_of(set));
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
      "compare",
      "Compare predictions with measurements, by timelines or traces, or results of studies with each other");
  CompareOptions& options = add_command(command, session, compare_command);
  command
      .add_option(
          "PATH", options.paths,
          "The folder of hdpsim execute; or a predicted and a measured timeline; or more timelines of a plan; or "
          "traces of PyTorch's profiler and a study of the same training; or folders of hdpsim study")
      .required()
      .existing_path();
  add_format(command, options.format);
  add_compare_trace(command, options.trace);
  command
      .add_option("--out", options.out,
                  "Write comparison.json, families.csv, ranks.csv and comparison.html there, or results.json, "
                  "results.csv and results.html")
      .type_name("FOLDER");
  command.footer(
      "Traces whose ranges name steps and micro-batches (hdpsim.torch), and timelines without instructions, are\n"
      "compared by rank, micro-batch and activity; other traces by activity alone. csv is the table of families, or\n"
      "of activities. The noise floor is what the runs of a step differ by: the medians of its even and of its odd\n"
      "runs, subtracted; it is known for steps that were executed with --repeat. Results of studies are compared with\n"
      "the first of them, plan by plan at the same point; as the simulator is exact, so is every difference.\n"
      "Example:\n"
      "  hdpsim execute configs/studies/real.yaml --plan hdp-balance --repeat 5 --out real\n"
      "  hdpsim compare real --out difference\n"
      "  hdpsim compare rank0.json.gz rank1.json.gz my-study.yaml --plan static\n"
      "  hdpsim compare traces/rank0-step5.json.gz my-study.yaml --plan traces/plan-step5.json\n"
      "  hdpsim study configs/studies/tiny.yaml --out tiny\n"
      "  hdpsim study configs/studies/tiny.yaml --set mesh.capacity=16Ki --out wider\n"
      "  hdpsim compare tiny wider");
}

}  // namespace hdpsim::app
