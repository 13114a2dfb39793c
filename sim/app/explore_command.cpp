#include <fmt/format.h>

#include "sim/app/command.h"
#include "sim/app/opener.h"
#include "sim/app/scratch_folder.h"
#include "sim/app/signals.h"
#include "sim/explore/http_server.h"
#include "sim/explore/session.h"
#include "sim/run/ordered_work.h"

namespace hdpsim::app {
namespace {

struct ExploreCommandOptions {
  std::string study;
  std::int64_t port = 0;
  std::int64_t jobs = static_cast<std::int64_t>(one_a_processor());
  bool open = false;
};

// What to do with the address, or what was done with it.
std::string next_step(const ExploreCommandOptions& options, const std::string& address) {
  if (!options.open) return "Open this address in a browser of this machine. Ctrl-C ends it.";
  const std::string opener = open_address(address);
  if (!opener.empty()) return fmt::format("Opened with {}. Ctrl-C ends it.", opener);
  return "There is nothing to open it with: $BROWSER names no program that starts, and there is no desktop with "
         "xdg-open. Open this address in a browser of this machine. Ctrl-C ends it.";
}

int explore_command(const ExploreCommandOptions& options, const Session& session) {
  const std::filesystem::path main_study =
      std::filesystem::path(session.data_folder) / "configs/studies/bytescale-7b.yaml";
  const ScratchFolder scratch("explore");
  ExploreSession explore({.study = options.study.empty() ? main_study.string() : options.study,
                          .data = session.data_folder,
                          .scratch = scratch.path(),
                          .version = version,
                          .jobs = static_cast<std::size_t>(options.jobs)});
  const auto server = make_http_server(explore, static_cast<int>(options.port));
  catch_stop_signals();
  print(server->address() + "\n");
  note(next_step(options, server->address()));
  server->serve([&] {
    if (stop_signal() == 0) return false;
    scratch.remove();  // a step that takes long will not end before this process is ended
    return true;
  });
  return stopped_exit();
}

}  // namespace

void add_explore_command(Command app, Session& session) {
  const Command command =
      app.add_subcommand("explore", "Interactive page: change a study in the browser and see its results at once");
  ExploreCommandOptions& options = add_command(command, session, explore_command);
  command.add_option("STUDY", options.study,
                     "The study to begin with, a YAML file (default: the main study, bytescale-7b)");
  command.add_option("--port", options.port, "The port on 127.0.0.1 (default: a free one)")
      .type_name("PORT")
      .within(1, 65535);
  add_count(command, "--jobs", options.jobs, "Threads (default: one a processor); results do not depend on it");
  command.add_flag("--open", options.open,
                   "Open the address with a command of $BROWSER or, on a desktop, with xdg-open; other users of this "
                   "machine can see it there");
  command.footer(
      "Prints an address with a token, which only browsers of this machine can open. The first step of each plan is\n"
      "shown at once, all steps follow; they are those of hdpsim study. Nothing is sent anywhere.\n"
      "Example:\n  hdpsim explore configs/studies/tiny.yaml --port 8080");
}

}  // namespace hdpsim::app
