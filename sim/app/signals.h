#pragma once

namespace hdpsim::app {

/// From now on Ctrl-C (SIGINT) and SIGTERM end the process with exit code 128 + signal, without the files that are half
/// written. A signal that whoever started the process ignores stays ignored. To be called first of all.
void end_on_signals();

/// From now on the first of them only asks to stop. The process is ended as above if it still runs 1.5 s later,
/// whatever it does then, or gets a second one.
void catch_stop_signals();

/// The signal that asked to stop, or 0. Safe from any thread.
[[nodiscard]] int stop_signal();

}  // namespace hdpsim::app
