#include "sim/app/from_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "sim/app/fitted_output.h"
#include "sim/app/logged_job.h"
#include "sim/app/signals.h"
#include "sim/base/text.h"
#include "sim/fit/fit_report.h"
#include "sim/profile/physical_parameters.h"
#include "sim/run/ordered_work.h"
#include "sim/study/catalog.h"
#include "sim/study/study_paths.h"
#include "sim/validate/step_log.h"

namespace hdpsim::app {
namespace {

std::string path_of_set(const std::string& named, const Catalog& catalog) {
  std::error_code refused;
  if (looks_like_path(named) || named.ends_with(".csv") || std::filesystem::is_regular_file(named, refused)) {
    return named;
  }
  const std::vector<std::string> shipped = names_in(catalog.validation_sets(), ".yaml");
  if (std::find(shipped.begin(), shipped.end(), named) == shipped.end()) {
    throw InputError(fmt::format("there is no validation set '{}'", named), suggestion(named, shipped));
  }
  return (catalog.validation_sets() / (named + ".yaml")).string();
}

// `training.recompute=none,full`.
void read_tried(const std::string& text, FitRequest& request) {
  if (text.empty()) return;
  const std::size_t equals = text.find('=');
  request.tried_key = text.substr(0, equals);
  for (std::size_t at = equals; at != std::string::npos && at < text.size();) {
    const std::size_t end = text.find(',', at + 1);
    request.tried_values.push_back(text.substr(at + 1, end == std::string::npos ? end : end - at - 1));
    at = end;
  }
  const bool says_nothing = std::any_of(request.tried_values.begin(), request.tried_values.end(),
                                        [](const std::string& value) { return value.empty(); });
  if (request.tried_key.empty() || request.tried_values.size() < 2 || says_nothing) {
    throw InputError(fmt::format("--try {}: it takes a key of the study and values to compare", text),
                     "write --try training.recompute=none,full");
  }
}

// A profile names its rows by their set.
void require_unlike_names(const std::vector<FitSource>& sets) {
  for (std::size_t i = 0; i < sets.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (sets[i].set.name != sets[j].set.name) continue;
      throw InputError({sets[i].path, 0, 0}, fmt::format("two of the sets are called {}", sets[i].set.name),
                       "name each once, or give one another 'name'");
    }
  }
}

// Of candidates in CSV the set of --like says the rest, or else that of the rows.
std::optional<NextRequest> read_next(const FromStepsOptions& options, const std::string& like, const std::string& rows,
                                     const Catalog& catalog, Diagnostics& problems) {
  if (options.next.empty()) return std::nullopt;
  const std::string path = path_of_set(options.next, catalog);
  const std::string common = like.empty() && !holds_steps_alone(rows) ? rows : like;
  auto candidates = load_step_log(path, holds_steps_alone(path) ? common : "", problems, FigureUse::to_measure);
  if (!candidates) return std::nullopt;
  return NextRequest{.candidates = std::move(*candidates), .path = path, .study = options.study};
}

}  // namespace

void add_from_steps(Command command, FromStepsOptions& options) {
  const Option from = command.add_option("--from-steps", options.rows,
                                         "Measure nothing: fit physical parameters of a profile to measured steps: "
                                         "validation sets, CSV files with their columns, or logs of Megatron-LM, "
                                         "torchtitan, nanotron, NeMo or HuggingFace's trainers");
  from.type_name("SET...");
  std::vector<Option> others;
  for (const Option option : add_imported_job(command, options.job)) others.push_back(option);
  command
      .add_option("--like", options.like,
                  "Setup of the measurements. For steps in CSV or a log: a validation set that states what all of them "
                  "have in common, or of a log the job as `hdpsim import` reads it; for samples, traces and "
                  "nccl-tests: a cluster or a profile")
      .type_name("NAME");
  others.push_back(command.add_option(
      "--fit", options.parameters,
      fmt::format("Which parameters (default: all that the profile has): {}", joined(fit_parameter_names(), ", "))));
  others.back().type_name("NAME,...").separated_by(',');
  others.push_back(
      command.add_option("--rows", options.chosen, "Only rows whose name has this text; may be given several times"));
  others.back().type_name("TEXT").one_at_a_time();
  others.push_back(command.add_option("--holdout", options.holdout,
                                      "Share of the rows that the fit must not see, such as 0.5; their errors are "
                                      "listed separately"));
  others.back().type_name("SHARE").within(0.0, 0.95);
  others.push_back(add_count(command, "--seed", options.seed, "Which rows --holdout chooses (default: 1)", 0));
  others.push_back(command.add_option("--try", options.tried,
                                      "Compare values of a study's key by cross-validated errors: "
                                      "training.recompute=none,full"));
  others.back().type_name("KEY=A,B");
  const Option tried = others.back();
  const Option next = command.add_option(
      "--next", options.next,
      "Also say which of these runs to measure next: a set, or a CSV file, of which the measured column may be empty");
  next.type_name("CANDIDATES").excludes(tried);
  others.push_back(next);
  command
      .add_option(
          "--for", options.study,
          "With --next, choose the runs that narrow the uncertainty of this study's step time most (default: of all "
          "parameters)")
      .type_name("STUDY")
      .needs(next);
  add_set(command, options.set, "every row");
  others.push_back(command.option("--set"));
  add_format(command, options.format);
  others.push_back(
      add_count(command, "--jobs", options.jobs, "Threads (default: one a processor); results do not depend on it"));
  for (const Option other : others) other.needs(from);
}

void require_no_like(const FromStepsOptions& options) {
  if (options.like.empty()) return;
  throw InputError("--like says what a fit starts from, and kernels are timed",
                   "add --from-steps, --from-samples, --from-trace or --nccl-tests");
}

void require_no_format(const FromStepsOptions& options) {
  if (options.format == Format::table) return;
  throw InputError("--format is of what a fit to steps or a check prints",
                   "add --from-steps or --check, or leave it out");
}

int calibrate_from_steps(const FromStepsOptions& options, const std::string& out, const Session& session) {
  Catalog catalog(session.data_folder);
  FittedOutput::require_file(out);
  FitRequest request{.sets = {},
                     .data_folder = session.data_folder,
                     .changes = {options.set, {}},
                     .parameters = options.parameters,
                     .rows = options.chosen,
                     .holdout = options.holdout,
                     .seed = static_cast<std::uint64_t>(options.seed),
                     .tried_key = {},
                     .tried_values = {},
                     .jobs = options.jobs > 0 ? static_cast<std::size_t>(options.jobs) : one_a_processor(),
                     .version = version,
                     .stop = is_stopped,
                     .tell = [](const std::string& line) { note(line); }};
  read_tried(options.tried, request);
  Diagnostics problems;
  std::vector<LoggedJob> jobs;  // whose files stay until the fit is done
  std::vector<std::string> told;
  std::string like;  // of the first
  for (const std::string& named : options.rows) {
    const std::string path = path_of_set(named, catalog);
    const LoggedJob& job =
        jobs.emplace_back(path, LoggedJobOptions{options.like, options.job.cluster, options.job.gpus}, catalog);
    const bool is_named = !options.like.empty() && job.like() == options.like;
    const std::string common = is_named ? path_of_set(options.like, catalog) : job.like();
    if (jobs.size() == 1) like = common;
    auto set = load_step_log(path, common, problems, FigureUse::published, &told);
    if (set) request.sets.push_back({std::move(*set), path});
  }
  for (const std::string& line : told) note(line);
  request.next = read_next(options, like, path_of_set(options.rows.front(), catalog), catalog, problems);
  problems.throw_if_any();
  require_unlike_names(request.sets);
  const FittedOutput output(out, session);
  catch_stop_signals();
  const std::optional<FitResult> result = fit_to_steps(request);
  if (!result) return stopped_exit();
  print(formatted(*result, options.format), options.format);
  if (const std::string warning = misfit_warning(*result); !warning.empty()) note(warning);
  output.write(result->profile);
  return 0;
}

}  // namespace hdpsim::app
