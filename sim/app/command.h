#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "sim/app/command_line.h"
#include "sim/app/exit_code.h"
#include "sim/app/terminal.h"
#include "sim/base/check.h"
#include "sim/base/input_files.h"
#include "sim/base/output_folder.h"
#include "sim/base/units.h"
#include "sim/results/format.h"

namespace hdpsim::app {

/// The data that all commands share, and the action of the chosen one once the whole command line has been read.
struct Session {
  std::string data_folder;
  std::string command_line;     ///< The command line as given.
  InputFiles inputs;            ///< Files that the command has read.
  std::function<int()> action;  ///< Returns the exit code.
};

extern const char* const version;
/// The commit of the sources that were built, as git describes it; empty without git.
extern const char* const commit;

/// Adds the commands of the program.
void add_commands(Command app, Session& session);

// One command per file. Each adds itself to the application.
void add_new_command(Command app, Session& session);
void add_import_command(Command app, Session& session);
void add_import_plan_command(Command app, Session& session);
void add_study_command(Command app, Session& session);
void add_plan_command(Command app, Session& session);
void add_check_command(Command app, Session& session);
void add_trace_command(Command app, Session& session);
void add_calibrate_command(Command app, Session& session);
void add_compress_command(Command app, Session& session);
void add_comm_command(Command app, Session& session);
void add_execute_command(Command app, Session& session);
void add_compare_command(Command app, Session& session);
void add_cluster_command(Command app, Session& session);
void add_decide_command(Command app, Session& session);
void add_tasks_command(Command app, Session& session);
void add_explain_command(Command app, Session& session);
void add_keys_command(Command app, Session& session);
void add_columns_command(Command app, Session& session);
void add_completion_command(Command app, Session& session);
void add_manual_command(Command app, Session& session);
void add_list_command(Command app, Session& session);
void add_validate_command(Command app, Session& session);
void add_replay_command(Command app, Session& session);
void add_tune_command(Command app, Session& session);
void add_explore_command(Command app, Session& session);

/// What these two are for; a build without kernels lists them, too.
inline constexpr char calibrate_help[] =
    "Write a profile for studies: time kernels on this machine, or fit one to steps, samples or traces";
inline constexpr char execute_help[] = "Run the plans of a study on real ranks and compare with the prediction";

/// Adds a command with its own options object, which lives as long as the command and is passed to `run`.
template <class Options>
Options& add_command(Command command, Session& session, int (*run)(const Options&, const Session&)) {
  auto options = std::make_shared<Options>();
  command.when_chosen(
      [options, &session, run] { session.action = [options, &session, run] { return run(*options, session); }; });
  return *options;
}

/// Adds an option for a count such as 4096, 256Ki or 100M, from `least` to `most`.
Option add_count(Command command, const std::string& name, std::int64_t& count, const std::string& help,
                 std::int64_t least = 1, std::int64_t most = std::numeric_limits<std::int64_t>::max());
/// Adds `--patience TIME`, at least a millisecond.
Option add_patience(Command command, Duration& patience, const std::string& help);
/// Adds `--format table|csv|json`.
Option add_format(Command command, Format& format);

/// A file of lengths that takes the place of a study's, and its column.
struct LengthsOptions {
  std::string file;
  std::string column;
};
/// Adds `--lengths FILE` and `--column NAME`.
void add_lengths(Command command, LengthsOptions& lengths);

/// Adds `--set KEY=VALUE`, which may be given several times and overrides values of `what`.
void add_set(Command command, std::vector<std::string>& overrides, std::string_view what);
/// Adds `--without MECHANISM`, which may be given several times.
void add_without(Command command, std::vector<std::string>& names);

/// Prints one line on results of earlier runs that were removed from a folder, if any.
void tell_removed(const OutputFolder& folder);

}  // namespace hdpsim::app
