#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "sim/app/command.h"
#include "sim/app/logged_job.h"
#include "sim/app/resumable.h"
#include "sim/app/study_processes.h"
#include "sim/base/printable.h"
#include "sim/study/study_paths.h"
#include "sim/validate/prediction_errors.h"
#include "sim/validate/step_log.h"
#include "sim/validate/trust_format.h"
#include "sim/validate/validation_format.h"
#include "sim/validate/validation_page.h"
#include "sim/validate/validation_study.h"

namespace hdpsim::app {
namespace {

namespace fs = std::filesystem;

struct ValidateOptions {
  std::vector<std::string> sets;
  LoggedJobOptions job;
  StudyChanges changes;
  ResumeOptions keeping;
  Format format = Format::table;
  bool summary = false;
  SharingOptions sharing;
};

std::vector<fs::path> chosen_sets(const ValidateOptions& options, const Catalog& catalog) {
  const std::vector<std::string> shipped = names_in(catalog.validation_sets(), ".yaml");
  std::vector<fs::path> paths;
  for (const std::string& set : options.sets.empty() ? shipped : options.sets) {
    if (looks_like_path(set) || is_there(set)) {
      paths.emplace_back(set);
    } else if (std::find(shipped.begin(), shipped.end(), set) != shipped.end()) {
      paths.push_back(catalog.validation_sets() / (set + ".yaml"));
    } else {
      throw InputError(fmt::format("there is no validation set '{}'", set), suggestion(set, shipped));
    }
  }
  return paths;
}

std::vector<ValidationStudy> load_sets(const ValidateOptions& options, Catalog& catalog) {
  std::vector<ValidationStudy> sets;
  for (const fs::path& path : chosen_sets(options, catalog)) {
    if (!holds_steps_alone(path.string())) {
      sets.push_back(load_validation(path.string(), catalog, options.changes));
      continue;
    }
    const LoggedJob job(path.string(), options.job, catalog);
    Diagnostics problems;
    std::vector<std::string> told;
    auto set = load_step_log(path.string(), job.like(), problems, FigureUse::published, &told);
    problems.throw_if_any();
    for (const std::string& line : told) note(line);
    sets.push_back(read_validation(std::move(*set), path.string(), catalog, options.changes));
  }
  return sets;
}

// A case is an ordinary study, which `hdpsim study` and `hdpsim explain` take.
void write_cases(const std::vector<ValidationStudy>& sets, OutputFolder& folder) {
  folder.folder("cases");
  std::vector<std::string> names;
  std::vector<const Value*> studies;
  for (const ValidationStudy& set : sets) {
    for (std::size_t i = 0; i < set.resolved.size(); ++i) {
      if (!set.points[i]) continue;
      names.push_back(fmt::format("{}-{}-{}", set.set.name, i + 1, set.set.cases[i].name));
      studies.push_back(&set.resolved[i]);
    }
  }
  names = as_file_names(names);
  for (std::size_t i = 0; i < names.size(); ++i) {
    folder.write(fmt::format("cases/{}.yaml", names[i]), to_yaml(*studies[i]));
  }
}

// For a process other than the first.
int help_first(const std::vector<ValidationStudy>& sets, const StudyProcesses& processes) {
  for (std::size_t i = 0; i < sets.size(); ++i) {
    if (!processes.serve(sets[i].study, static_cast<int>(i))) break;
  }
  return is_stopped() ? stopped_exit() : 0;
}

int validate_command(const ValidateOptions& options, const Session& session) {
  require_folder(options.keeping);
  const StudyProcesses processes(options.sharing);
  Catalog catalog(session.data_folder);
  const std::vector<ValidationStudy> sets = processes.read([&] { return load_sets(options, catalog); });
  catch_stop_signals();
  if (!processes.is_first()) return help_first(sets, processes);
  Resumable work(
      options.keeping, session,
      {.kind = "validation",
       .results = {"validation.json", "validation.csv", "sets.csv", "validation.html", "trust.csv", "trust.yaml"}});
  Journal journal = work.kept().open(runs_title());
  std::vector<ValidationRow> rows;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    note(fmt::format("{}: {} cases", sets[i].set.name, sets[i].set.cases.size()));
    const std::unique_ptr<RunWorkers> helpers = processes.helpers(sets[i].study, static_cast<int>(i));
    auto part = work.run([&](ProgressDisplay& /*display*/) {
      return validate(sets[i], {.jobs = processes.jobs(),
                                .journal = &journal,
                                .version = version,
                                .stop = is_stopped,
                                .helpers = helpers.get()});
    });
    if (!part) return stopped_before(options.keeping, sets[i].set.name, "its cases were simulated");
    std::move(part->begin(), part->end(), std::back_inserter(rows));
  }
  work.write([&](OutputFolder& folder) {
    folder.write("validation.json", formatted(rows, Format::json));
    folder.write("validation.csv", formatted(rows, Format::csv));
    folder.write("sets.csv", summaries_csv(summarize(rows)));
    folder.write("validation.html", validation_page(rows));
    folder.write("trust.csv", trust_formatted(rows, Format::csv));
    folder.write("trust.yaml", published_errors_file(summed_up(prediction_errors(rows))));
    write_cases(sets, folder);
  });
  print(options.summary ? trust_formatted(rows, options.format) : formatted(rows, options.format), options.format);
  return 0;
}

}  // namespace

void add_validate_command(Command app, Session& session) {
  const Command command = app.add_subcommand("validate", "Compare predictions with published measurements");
  ValidateOptions& options = add_command(command, session, validate_command);
  command.add_option("SET", options.sets, "Shipped sets, files, or logs of steps (default: all of configs/validation)");
  command
      .add_option("--like", options.job.like,
                  "Of a log of steps, the job: what `hdpsim import` reads (torchtitan's TOML, a script), a validation "
                  "set; a log of Megatron-LM that lists its arguments needs none")
      .type_name("NAME");
  (void)add_imported_job(command, options.job);
  add_set(command, options.changes.set, "every case");
  add_without(command, options.changes.without);
  command
      .add_option("--out", options.keeping.out,
                  "Write validation.json, validation.csv, sets.csv, a page, validation.html, errors by kind of run "
                  "(trust.csv, trust.yaml) and each case as a study (cases/) there")
      .type_name("FOLDER");
  command.add_flag("--summary", options.summary,
                   "Print how far figures of each kind of run may be off instead of the rows, and how often that was "
                   "so for sets that were left out");
  add_format(command, options.format);
  add_sharing(command, options.sharing);
  command.add_flag("--resume", options.keeping.resume,
                   "Take the cases that an earlier execution has simulated from the folder of --out");
  command.footer(
      "Under mpirun or srun the processes share the cases.\n"
      "Examples:\n  hdpsim validate sc21 vtrain-multi-node\n  hdpsim validate --summary\n"
      "  hdpsim validate run.log --cluster h100-rail\n  hdpsim validate titan.log --like llama3_8b.toml --gpus 64\n"
      "  hdpsim validate sc21 --set training.dropout=false");
}

}  // namespace hdpsim::app
