#pragma once

#include <string>
#include <vector>

#include "sim/app/command.h"

namespace hdpsim::app {

/// `hdpsim calibrate --from-samples`: a profile fitted to what another program measured. Needs no kernels.
struct FromSamplesOptions {
  std::vector<std::string> files;  ///< None: another kind of calibration.
  std::string like;                ///< A cluster or a profile that has the rest; may be empty.
  std::string out;                 ///< The profile, or its folder. Empty without a name: nothing is written.
  std::string name;                ///< Of the profile in that folder; may be empty.
};

/// Adds `--from-samples FILE...` for options.files.
void add_from_samples(Command command, FromSamplesOptions& options);

/// Fits, prints the summary of the fit and what was kept of --like, and writes the profile.
int calibrate_from_samples(const FromSamplesOptions& options, const Session& session);

}  // namespace hdpsim::app
