#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <new>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "kernels/spec/error.h"
#include "sim/app/command.h"
#include "sim/app/data_folder.h"
#include "sim/app/signals.h"
#include "sim/app/terminal.h"
#include "sim/base/atomic_file.h"
#include "sim/base/check.h"
#include "sim/base/diagnostic.h"
#include "sim/base/text.h"
#include "sim/base/units.h"

namespace hdpsim::app {
namespace {

constexpr char overview[] =
    "What would this plan cost on that cluster for my data? Simulates training steps of long-context language models.";
constexpr char exit_codes[] =
    "Example:\n  hdpsim study configs/studies/tiny.yaml\n\n"
    "Exit codes: 0 fine; 2 the input is wrong; 3 the machine refused (no device, no memory, cannot write); 70 a bug;\n"
    "130 and 143 stopped by Ctrl-C and by SIGTERM, within two seconds.";

constexpr char out_of_memory[] = "error: out of memory: this takes more than the machine has\n";

int ended(ExitCode code, const std::string& text) {
  complain(text);
  return code;
}

// Whatever is wrong may be so because nothing shipped was found.
int acted(const Session& session) {
  try {
    return session.action();
  } catch (const InputError&) {
    if (!std::filesystem::is_directory(std::filesystem::path(session.data_folder) / "configs")) {
      const std::string places = joined(data_folder_places(), " and ");
      note(fmt::format("no shipped configs were found: looked in {}; --data-dir names their folder",
                       session.data_folder.empty() ? places : session.data_folder));
    }
    throw;
  }
}

// Whether the command line says nothing, or `study` and not which.
bool says_nothing(int argc, char** argv) {
  return argc < 2 || (argc == 2 && std::string_view(argv[1]) == "study");
}

std::string first_steps(const std::string& data_folder) {
  const std::string folder = data_folder.empty() ? "" : data_folder + '/';
  return fmt::format(
      "hdpsim study {}configs/studies/tiny.yaml   simulates a shipped study, in a second\n"
      "hdpsim new mine.yaml   writes a study of your own: cluster, model and lengths\n"
      "hdpsim --help   lists all commands, and hdpsim COMMAND --help explains one",
      folder);
}

int run(int argc, char** argv) {
  CommandLine line("hdpsim", overview);
  const Command app = line.top();
  Session session;
  session.data_folder = shipped_data_folder();
  session.command_line =
      fmt::format("hdpsim {}", joined(std::span(argv, static_cast<std::size_t>(argc)).subspan(1), " "));
  app.add_option("--data-dir", session.data_folder, "Folder with the shipped configs, calib/profiles and traces")
      .type_name("FOLDER")
      .existing_folder();
  line.version_flag("--version", fmt::format("hdpsim {}", version));
  app.require_subcommand();
  app.footer(exit_codes);
  add_commands(app, session);
  if (says_nothing(argc, argv)) return ended(wrong_input, first_steps(session.data_folder));
  if (const auto asked = line.parse({argv + 1, argv + argc})) {
    print(*asked);
    return fine;
  }
  return acted(session);
}

// The only place where exceptions become exit codes.
int guarded_run(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const WrongCommandLine& error) {
    return ended(wrong_input, error.what());
  } catch (const InputError& error) {
    return ended(wrong_input, error.what());
  } catch (const QuantityOverflow& error) {
    return ended(wrong_input,
                 fmt::format("error: {}\n        are sizes, rates and times those that were meant?", error.what()));
  } catch (const MachineError& error) {
    return ended(machine_refused, fmt::format("error: {}", error.what()));
  } catch (const kernels::UnsupportedInput& error) {
    return ended(wrong_input, fmt::format("error: {}", error.what()));
  } catch (const kernels::DeviceError& error) {
    return ended(machine_refused, fmt::format("error: {}", error.what()));
  } catch (const std::bad_alloc&) {
    return ended(machine_refused, out_of_memory);
  } catch (const std::length_error&) {  // more items than any memory holds
    return ended(machine_refused, out_of_memory);
  } catch (const std::system_error& error) {
    return ended(machine_refused, fmt::format("error: {}", error.what()));
  } catch (const CheckFailure& error) {
    return ended(bug, fmt::format("bug: {}", error.what()));
  } catch (const std::exception& error) {
    return ended(bug, fmt::format("bug: unexpected {}", error.what()));
  }
}

// The end of memory inside of what may not throw, where no exception gets out. Needs no memory itself.
[[noreturn]] void terminated() {
  try {
    if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    remove_unfinished_files();
    complain_without_memory(out_of_memory);
    ::_exit(machine_refused);
  } catch (...) {  // NOLINT(bugprone-empty-catch): a bug, which abort() shows to whoever looks into the core
  }
  std::abort();
}

}  // namespace
}  // namespace hdpsim::app

int main(int argc, char** argv) {
  std::set_terminate(hdpsim::app::terminated);
  hdpsim::app::open_closed_streams();
  hdpsim::app::end_on_signals();
  (void)std::signal(SIGXFSZ, SIG_IGN);  // a write beyond the size limit is then refused like one on a full disk
  return hdpsim::app::guarded_run(argc, argv);
}
