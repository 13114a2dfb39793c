#pragma once

#include <chrono>
#include <string>

#include "calib/measure/session.h"
#include "sim/replay/replay.h"
#include "sim/run/runner.h"
#include "sim/tune/tune.h"

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
  /// Of a replay: without a terminal a line for every tenth of the steps.
  void show(const ReplayProgress& progress);
  /// Of a tuning: without a terminal a line for every tenth of what is to be simulated at most.
  void show(const TuneProgress& progress);

 private:
  using Clock = std::chrono::steady_clock;
  void draw(double share, const std::string& text);
  /// On a terminal a bar, otherwise a line whenever another tenth is done.
  void draw_or_tell(std::int64_t done, std::int64_t all, const std::string& text);
  /// "about 12 s left", by what was done since the begin; nothing before anything was.
  [[nodiscard]] std::string time_left(std::int64_t done, std::int64_t left) const;

  const Clock::time_point begin_ = Clock::now();
  bool on_terminal_;
  bool drawn_ = false;
  Clock::time_point last_;
  std::size_t tenths_told_ = 0;
};

}  // namespace hdpsim::app
