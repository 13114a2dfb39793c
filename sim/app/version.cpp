// A file of its own, so that a commit recompiles nothing else.
#include "sim/app/command.h"

namespace hdpsim::app {

const char* const version = HDPSIM_VERSION;
const char* const commit = HDPSIM_COMMIT;

}  // namespace hdpsim::app
