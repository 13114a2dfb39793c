#include "sim/app/logged_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "sim/base/atomic_file.h"
#include "sim/import/argument.h"
#include "sim/import/imported_study.h"
#include "sim/study/study.h"
#include "sim/validate/step_log.h"

namespace hdpsim::app {
namespace {

bool lists_arguments(const std::string& file) {
  if (!is_there(file)) return false;  // told where it is read
  Diagnostics told_later;
  const auto text = read_text_file(file, told_later);
  return text && has_argument_block(*text);
}

// Whether `hdpsim import` reads a file that is no validation set.
bool is_job(const std::string& file) {
  const std::string ending = std::filesystem::path(file).extension().string();
  return ending == ".toml" || ending == ".sh" || (holds_steps_alone(file) && lists_arguments(file));
}

// A study of the one plan that the job has, as what all rows of a validation set have in common.
std::string set_of(const ImportedStudy& study, const std::string& file, const std::string& name) {
  Diagnostics unused;
  Value common = parse_document(name, study.text, unused);
  std::erase_if(common.entries,
                [](const Value::Entry& entry) { return entry.key == "name" || entry.key == "compare_to"; });
  if (Value* plans = common.find("plans"); plans != nullptr && plans->items.size() > 1) plans->items.resize(1);
  Value set = Value::map();
  set.set("name", Value::scalar(std::filesystem::path(file).stem().string()));
  set.set("about", Value::scalar("steps of one job"));
  set.set("source", Value::scalar(file));
  set.set("study", std::move(common));
  return to_yaml(set);
}

}  // namespace

std::vector<Option> add_imported_job(Command command, LoggedJobOptions& options) {
  const Option cluster =
      command.add_option("--cluster", options.cluster, "Of a log, the cluster of its job: a shipped one, or a file");
  cluster.type_name("NAME");
  return {cluster,
          add_count(command, "--gpus", options.gpus, "Of a log, the GPUs of its job, if it does not say them")};
}

LoggedJob::LoggedJob(const std::string& steps, const LoggedJobOptions& options, Catalog& catalog)
    : like_(options.like) {
  if (!holds_steps_alone(steps) || steps.ends_with(".csv")) return;
  if (!options.like.empty() && is_job(options.like)) {
    import(options.like, options, catalog);
  } else if (options.like.empty() && lists_arguments(steps)) {
    import(steps, options, catalog);
  }
}

void LoggedJob::import(const std::string& file, const LoggedJobOptions& options, Catalog& catalog) {
  folder_ = std::make_unique<ScratchFolder>("job");
  const std::string path = (folder_->path() / "job.yaml").string();
  ImportOptions stated{.cluster = options.cluster};
  if (options.gpus > 0) stated.gpus = options.gpus;
  const ImportedStudy study = import_study({file}, path, stated, catalog);
  if (study.model) write_file(study.model_file.string(), *study.model);
  try {
    (void)parse_study(path, study.text, {}, catalog);
  } catch (const InputError& error) {
    throw InputError(at_source(study, path, error.diagnostics()));
  }
  write_file(path, set_of(study, file, path));
  const std::string told = text_of(study.notes);
  note(told.substr(0, told.find_last_not_of('\n') + 1));
  like_ = path;
}

}  // namespace hdpsim::app
