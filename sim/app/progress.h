#pragma once

#include <chrono>
#include <string>

#include "calib/measure/session.h"
#include "sim/study/runner.h"

namespace hdpsim::app {

/// Tells on standard error how far a command is: a bar on a terminal, otherwise a line now and then.
class ProgressDisplay {
 public:
  ProgressDisplay();
  ~ProgressDisplay();
  ProgressDisplay(const ProgressDisplay&) = delete;
  ProgressDisplay& operator=(const ProgressDisplay&) = delete;

  /// Of a study: without a terminal a line for every run that is finished.
  void show(const Progress& progress);
  /// Of a calibration: without a terminal a line for every tenth of the measurements.
  void show(const calib::Progress& progress);

 private:
  using Clock = std::chrono::steady_clock;
  void draw(double share, const std::string& text);

  bool on_terminal_;
  bool drawn_ = false;
  Clock::time_point last_;
  std::size_t tenths_told_ = 0;
};

}  // namespace hdpsim::app
