#pragma once

#include <chrono>

#include "sim/study/runner.h"

namespace hdpsim::app {

/// Tells on standard error how far a study is: a bar on a terminal, otherwise a line for every run that is finished.
class ProgressDisplay {
 public:
  ProgressDisplay();
  ~ProgressDisplay();
  ProgressDisplay(const ProgressDisplay&) = delete;
  ProgressDisplay& operator=(const ProgressDisplay&) = delete;

  void show(const Progress& progress);

 private:
  using Clock = std::chrono::steady_clock;
  void draw(const Progress& progress);

  bool on_terminal_;
  bool drawn_ = false;
  Clock::time_point last_;
};

}  // namespace hdpsim::app
