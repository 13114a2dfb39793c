#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/app/command.h"
#include "sim/app/logged_job.h"

namespace hdpsim::app {

/// `hdpsim calibrate --from-steps`: parameters of a profile fitted to measured steps. Needs no kernels.
struct FromStepsOptions {
  std::vector<std::string> rows;  ///< Sets or logs; none: another kind of calibration.
  std::string like;               ///< Also of traces (from_trace.h).
  LoggedJobOptions job;           ///< Of a log; `like` is the one above.
  std::vector<std::string> parameters;
  std::vector<std::string> chosen;
  double holdout = 0;
  std::int64_t seed = 1;
  std::string tried;
  std::string next;   ///< Candidates to measure next; empty: this is not asked.
  std::string study;  ///< Whose step time they are to narrow; empty: all parameters.
  std::vector<std::string> set;
  std::int64_t jobs = 0;  ///< 0: one thread a processor.
  Format format = Format::table;
};

/// Adds the options, all but `--out`. All except the first need it, but `--like` and `--format`, which other kinds of
/// calibration take, too.
void add_from_steps(Command command, FromStepsOptions& options);

/// InputError if `--like` was given: for a calibration that starts from nothing.
void require_no_like(const FromStepsOptions& options);

/// InputError if `--format` was given: for a calibration that prints a summary for people alone.
void require_no_format(const FromStepsOptions& options);

/// Fits, prints the result and writes the profile to the file `out`, if that is not empty.
int calibrate_from_steps(const FromStepsOptions& options, const std::string& out, const Session& session);

}  // namespace hdpsim::app
