#pragma once

namespace hdpsim::app {

/// From now on the first Ctrl-C (SIGINT) or SIGTERM only asks to stop; the second ends the process as usual.
void catch_stop_signals();

/// The signal that asked to stop, or 0. Safe from any thread.
[[nodiscard]] int stop_signal();

}  // namespace hdpsim::app
