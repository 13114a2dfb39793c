#include "sim/app/command.h"
#include "sim/base/atomic_file.h"
#include "sim/plan/plan_file.h"
#include "sim/report/estimates_format.h"
#include "sim/run/plan_documents.h"
#include "sim/run/plan_estimates.h"
#include "sim/study/study.h"

namespace hdpsim::app {
namespace {

struct PlanOptions {
  std::string file;
  std::vector<std::string> overrides;
  std::int64_t step = 0;
  std::int64_t point = 0;
  std::string plan;
  std::string out;
  bool estimate = false;
  Format format = Format::table;
};

int plan_command(const PlanOptions& options, const Session& session) {
  Catalog catalog(session.data_folder);
  const Study study = load_study(options.file, options.overrides, catalog);
  const StudyPoint& point = chosen_point(study, options.point);
  if (options.estimate) {
    print(formatted(estimate_plans(study, point, options.step), options.format), options.format);
    return 0;
  }
  const std::size_t plan = chosen_plan(study, options.plan);
  if (!options.out.empty()) session.inputs.require_none_at(options.out);
  const std::string text = plan_text(planned_document(study, point, plan, options.step, version));
  if (options.out.empty()) {
    print(text, Format::json);
  } else {
    remove_left_overs(options.out);
    write_file(options.out, text);
  }
  return 0;
}

}  // namespace

void add_plan_command(Command app, Session& session) {
  const Command command = app.add_subcommand("plan", "Write the plan of one step of a study: who computes what");
  PlanOptions& options = add_command(command, session, plan_command);
  command.add_option("STUDY", options.file, "The study, a YAML file").required();
  add_count(command, "--step", options.step, "Which step, counted from 0", 0);
  command.add_option("--plan", options.plan, "Which plan, if the study has several").type_name("NAME");
  add_count(command, "--point", options.point, "Which point of the sweep, counted from 0 (default: 0)", 0);
  add_set(command, options.overrides, "the study");
  command.add_option("--out", options.out, "The file to write (default: standard output)").type_name("FILE");
  command
      .add_flag("--estimate", options.estimate,
                "Instead, print the planners' own estimate of every plan of the study, and a lower bound")
      .excludes(command.option("--plan"))
      .excludes(command.option("--out"));
  add_format(command, options.format).needs(command.option("--estimate"));
  command.footer("Example:\n  hdpsim plan configs/studies/tiny.yaml --step 1 --plan hdp-balance --out plan.json");
}

}  // namespace hdpsim::app
