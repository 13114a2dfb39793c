#include "sim/app/command.h"

namespace hdpsim::app {

// The program that `scripts/quickstart` builds first.
void add_commands(Command app, Session& session) {
  add_study_command(app, session);
}

}  // namespace hdpsim::app
