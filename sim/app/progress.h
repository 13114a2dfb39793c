#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "sim/production/production.h"
#include "sim/replay/replay.h"
#include "sim/run/advice.h"
#include "sim/run/runner.h"
#include "sim/tune/tune.h"

namespace hdpsim::app {

/// How far a calibration is.
struct MeasuringProgress {
  std::size_t done = 0;
  std::size_t total = 0;
  double left_s = 0;    ///< At the speed so far.
  std::string subject;  ///< What is being measured.
};

/// How much of some large files has been read.
struct ReadingProgress {
  double share = 0;
};

/// Shows the progress of a command on standard error: a bar on a terminal, otherwise a line now and then.
class ProgressDisplay {
 public:
  ProgressDisplay();
  ~ProgressDisplay();
  ProgressDisplay(const ProgressDisplay&) = delete;
  ProgressDisplay& operator=(const ProgressDisplay&) = delete;

  /// Since it was made.
  [[nodiscard]] double seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

  /// Progress of a study: without a terminal a line for every finished run.
  void show(const Progress& progress);
  /// Progress of a calibration: without a terminal a line for every tenth of the measurements.
  void show(const MeasuringProgress& progress);
  /// Progress of advice: without a terminal a line for every tenth, once it has taken a few seconds.
  void show(const AdviceProgress& progress);
  /// Progress of a replay: without a terminal a line for every tenth of the steps.
  void show(const ReplayProgress& progress);
  /// Progress of runs of hours: without a terminal a line for every tenth.
  void show(const ProductionProgress& progress);
  /// Progress of reading: without a terminal a line for every tenth, once it has taken a few seconds.
  void show(const ReadingProgress& progress);
  /// Progress of a tuning: without a terminal a line for every tenth of what it is expected to compute.
  void show(const TuneProgress& progress);

 private:
  using Clock = std::chrono::steady_clock;
  void draw(double share, const std::string& text);
  /// Draws a bar on a terminal, otherwise prints a line whenever another tenth is done.
  void draw_or_tell(std::int64_t done, std::int64_t all, const std::string& text);
  /// "about 12 s left", from the time since the begin; empty before the first result.
  [[nodiscard]] std::string time_left(std::int64_t done, std::int64_t left) const;

  const Clock::time_point begin_ = Clock::now();
  bool on_terminal_;
  bool drawn_ = false;
  Clock::time_point last_;
  std::size_t tenths_told_ = 0;
};

}  // namespace hdpsim::app
