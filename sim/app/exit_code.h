#pragma once

namespace hdpsim::app {

/// Exit codes of the program, except after signals.
enum ExitCode {
  fine = 0,
  wrong_input = 2,
  machine_refused = 3,  ///< No device, no memory, a file that cannot be written, processes that do not start.
  bug = 70,             ///< EX_SOFTWARE of sysexits.h.
};

/// Exit code of a program that a signal has ended, minus the signal, as shells expect it.
inline constexpr int exit_by_signal = 128;

}  // namespace hdpsim::app
