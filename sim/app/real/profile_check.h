#pragma once

#include <string>

#include "sim/app/command.h"

namespace hdpsim::app {

/// `hdpsim calibrate --check`: whether a profile still holds on this machine.
struct ProfileCheckOptions {
  std::string profile;  ///< A name, or a file; empty: another kind of calibration.
  Duration time_limit;  ///< Zero: 20 s.
  Format format = Format::table;
};

/// Times some of the profile's samples again until the time is up, three times at least, and prints what became of each
/// family and of the whole. Returns 0 whatever the verdict: it is an answer. InputError if the profile was not measured
/// by a calibration, or on a GPU while this machine has none.
int check_profile(const ProfileCheckOptions& options, const Session& session);

}  // namespace hdpsim::app
