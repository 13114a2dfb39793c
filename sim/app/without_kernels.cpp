#include "sim/app/command.h"

namespace hdpsim::app {
namespace {

struct NoOptions {};

int refuse(const NoOptions&, const Session&) {
  throw MachineError(
      "this program was built for studies alone, without kernels\n"
      "        ./scripts/build builds all of it");
}

void add_missing(CLI::App& app, Session& session, const char* name, const char* help) {
  CLI::App* command = app.add_subcommand(name, help);
  command->allow_extras()->footer("Not in this build, which has no kernels: ./scripts/build builds all of it.");
  add_command(*command, session, refuse);
}

}  // namespace

void add_calibrate_command(CLI::App& app, Session& session) {
  add_missing(app, session, "calibrate", calibrate_help);
}

void add_execute_command(CLI::App& app, Session& session) {
  add_missing(app, session, "execute", execute_help);
}

}  // namespace hdpsim::app
