#include "sim/app/command.h"
#include "sim/app/drift_figures.h"
#include "sim/compare/comparison_figures.h"
#include "sim/compare/result_comparison.h"
#include "sim/decide/decision_figures.h"
#include "sim/fit/fit_figures.h"
#include "sim/production/production_figures.h"
#include "sim/replay/window_table.h"
#include "sim/results/figure_page.h"
#include "sim/results/result_files.h"
#include "sim/tasks/task_figures.h"
#include "sim/tune/tune_figures.h"
#include "sim/validate/validation_figures.h"

namespace hdpsim::app {
namespace {

struct ColumnsOptions {
  std::vector<std::string> names;
  std::string format = "text";
};

int print_columns(const ColumnsOptions& options, const Session& /*session*/) {
  const std::vector<FigureSection> sections = {study_figures(),      replay_figures(),     production_figures(),
                                               tuning_figures(),     decision_figures(),   task_figures(),
                                               execution_figures(),  comparison_figures(), result_comparison_figures(),
                                               validation_figures(), fit_figures(),        drift_figures()};
  if (options.format == "schema") {
    print_bytes(result_schema());
  } else if (options.format == "markdown") {
    print_bytes(figure_page(sections));
  } else {
    print(figure_text(sections, options.names));
  }
  return 0;
}

}  // namespace

void add_columns_command(Command app, Session& session) {
  const Command command =
      app.add_subcommand("columns", "Explain the figures of results: unit, meaning, and which file has them");
  ColumnsOptions& options = add_command(command, session, print_columns);
  command.add_option("NAME", options.names,
                     "A column of a CSV file, or a place in a JSON file: group_wait_s, memory_gb.fits (default: all)");
  command
      .add_option("--format", options.format,
                  "What to print: text, the reference page of all figures in Markdown, or the JSON schema of "
                  "result.json")
      .one_of({"text", "markdown", "schema"})
      .type_name("FORMAT");
  command.footer("Example:\n  hdpsim columns group_wait_s mfu");
}

}  // namespace hdpsim::app
