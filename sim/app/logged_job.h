#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/app/command.h"
#include "sim/app/scratch_folder.h"
#include "sim/base/diagnostic.h"
#include "sim/study/catalog.h"

namespace hdpsim::app {

/// What the user says of the job whose steps are in a log.
struct LoggedJobOptions {
  std::string like;       ///< A validation set, or a job that `hdpsim import` reads; empty: nothing.
  std::string cluster;    ///< A preset or a file; empty: one is assumed, which is said.
  std::int64_t gpus = 0;  ///< Of the job; 0: the file says it.
};

/// Adds `--cluster` and `--gpus`, which serve an import alone.
std::vector<Option> add_imported_job(Command command, LoggedJobOptions& options);

/// What steps of a log have in common, as the file that load_step_log() takes for that. Megatron-LM lists the arguments
/// of a job in its log, which is then imported as `hdpsim import` does. Of other logs `like` is a validation set, or
/// the job: torchtitan's TOML, a script, or another log that lists arguments.
class LoggedJob {
 public:
  /// InputError with the problems of the import, at their places; its notes are printed.
  LoggedJob(const std::string& steps, const LoggedJobOptions& options, Catalog& catalog);

  /// The path of that file; empty if there is nothing to say.
  [[nodiscard]] const std::string& like() const { return like_; }

 private:
  void import(const std::string& file, const LoggedJobOptions& options, Catalog& catalog);

  std::unique_ptr<ScratchFolder> folder_;
  std::string like_;
};

}  // namespace hdpsim::app
