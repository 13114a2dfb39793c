// Alone, so that a commit makes nothing else be compiled again.
#include "sim/app/command.h"

namespace hdpsim::app {

const char* const version = HDPSIM_VERSION;
const char* const commit = HDPSIM_COMMIT;

}  // namespace hdpsim::app
