#pragma once

#include "sim/app/exit_code.h"

namespace hdpsim::app {

/// Makes Ctrl-C (SIGINT) and SIGTERM end the process with exit code 128 + signal, and removes unfinished files. A
/// signal that the starter of the process ignores stays ignored. Call it first of all.
void end_on_signals();

/// Makes the first of these signals only ask to stop. The process is ended as above if it still runs 1.5 s later,
/// whatever it is doing, or gets a second one.
void catch_stop_signals();

/// The signal that asked to stop, or 0. Safe from any thread.
[[nodiscard]] int stop_signal();
/// Whether a signal asked to stop. Safe from any thread.
[[nodiscard]] inline bool is_stopped() {
  return stop_signal() != 0;
}
/// The exit code of a process that a signal has stopped.
[[nodiscard]] inline int stopped_exit() {
  return exit_by_signal + stop_signal();
}

}  // namespace hdpsim::app
