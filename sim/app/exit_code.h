#pragma once

namespace hdpsim::app {

/// What the program ends with, but for signals.
enum ExitCode {
  fine = 0,
  wrong_input = 2,
  machine_refused = 3,  ///< No device, no memory, a file that cannot be written, processes that do not start.
  bug = 70,             ///< EX_SOFTWARE of sysexits.h.
};

/// What shells expect of a program that a signal has ended, less the signal.
inline constexpr int exit_by_signal = 128;

}  // namespace hdpsim::app
