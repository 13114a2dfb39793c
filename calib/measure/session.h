#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "calib/measure/device.h"
#include "calib/measure/journal.h"
#include "calib/measure/plan.h"

namespace hdpsim::calib {

/// How far a session is. Counts are of measurements: subjects times rounds. Subjects about which the rounds do not
/// agree add to the total; where there are as many rounds as there is time for, it is what there will be at this speed.
struct Progress {
  std::size_t done = 0;
  std::size_t total = 0;
  double left_s = 0;                 ///< At the speed so far.
  const Subject* subject = nullptr;  ///< What is being measured.
};

struct SessionOptions {
  DeviceSpeed speed{};
  const StoppingRule* rule = nullptr;
  int rounds = 2;           ///< Of everything.
  int least_rounds = 2;     ///< Of what they agree about, too, while there is time.
  int most_rounds = 2;      ///< Of what they do not agree about, while there is time.
  double agreement = 0.01;  ///< Rounds agree if what is taken of them is no more uncertain (uncertainty_of_quantile).
  std::uint64_t seed = 1;
  double time_limit_s = 0;  ///< Ends the session as if all but what is essential were done; 0 is none.
  /// Asked when all else is measured, until it names nothing or time is up: what of the plan to measure once more.
  std::function<std::vector<Subject>(const Journal&)> doubtful = [](const Journal&) { return std::vector<Subject>{}; };
  std::function<bool()> stop = [] { return false; };
  std::function<void(const Progress&)> report = [](const Progress&) {};
};

struct SessionResult {
  bool stopped = false;               ///< By options.stop. What was measured is in the journal.
  std::size_t left_out = 0;           ///< Measurements, of the rounds of everything, for which there was no time.
  double beyond_limit_s = 0;          ///< How long what is essential took when the time was over.
  std::size_t unsettled = 0;          ///< Subjects about which the rounds do not agree.
  std::size_t postponed = 0;          ///< Measurements that had to wait because the device was not as found.
  std::vector<std::string> refusals;  ///< What was measured and could not be believed, with the reason.
  std::int64_t throttled = 0;         ///< Runs thrown away.
  std::int64_t impossible = 0;
};

/// Measures everything of the plan that the journal does not hold yet, and writes every measurement to the journal at
/// once. What is essential comes first, one round of it, which no time limit ends: a busy machine has a profile, too. Then
/// comes what matters most, in `rounds` rounds, each in an order of its own (drawn from the seed). What is
/// left of the time goes to further rounds of what has too few of them or is not agreed about: something disturbed some
/// of those. The last tenth of the time limit is for what is doubtful.
/// What the device is not ready for waits until it is as found again, behind everything else, and for at most half a
/// minute behind nothing.
/// Errors of the device pass through; the journal keeps what there is.
[[nodiscard]] SessionResult run_session(Device& device, const std::vector<Planned>& plan, Journal& journal,
                                        const SessionOptions& options);

}  // namespace hdpsim::calib
