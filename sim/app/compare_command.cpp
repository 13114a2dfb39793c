#include <fmt/format.h>

#include "sim/app/command.h"
#include "sim/app/compare_trace.h"
#include "sim/app/timeline_sets.h"
#include "sim/base/output_folder.h"
#include "sim/compare/comparison_output.h"
#include "sim/compare/step_comparison.h"

namespace hdpsim::app {
namespace {

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
