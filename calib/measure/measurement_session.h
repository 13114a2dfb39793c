#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "calib/measure/device.h"
#include "calib/measure/measurement_plan.h"
#include "calib/measure/sample_journal.h"

namespace hdpsim::calib {

/// The progress of a session. Counts are of measurements: subjects times rounds. Subjects whose rounds do not agree add
/// to the total; if there are as many rounds as there is time for, the total is an estimate at the current speed.
struct Progress {
  std::size_t done = 0;
  std::size_t total = 0;
  double left_s = 0;                 ///< At the speed so far.
  const Subject* subject = nullptr;  ///< The subject that is being measured.
};

struct SessionOptions {
  DeviceSpeed speed{};
  const StoppingRule* rule = nullptr;
  int rounds = 2;           ///< Rounds of every subject.
  int least_rounds = 2;     ///< Rounds also of subjects whose rounds agree, while there is time.
  int most_rounds = 2;      ///< Rounds of subjects whose rounds do not agree, while there is time.
  double agreement = 0.01;  ///< Rounds agree if the result of them is at most this uncertain (uncertainty_of_quantile).
  std::uint64_t seed = 1;
  double time_limit_s = 0;  ///< Ends the session as if everything except essential measurements were done; 0 is none.
  /// Called when everything else is measured, until it returns nothing or time is up: the subjects of the plan to
  /// measure once more.
  std::function<std::vector<Subject>(const SampleJournal&)> doubtful = [](const SampleJournal&) {
    return std::vector<Subject>{};
  };
  std::function<bool()> stop = [] { return false; };
  std::function<void(const Progress&)> report = [](const Progress&) {};
};

struct SessionResult {
  bool stopped = false;               ///< Stopped by options.stop. The journal has all measurements so far.
  std::size_t left_out = 0;           ///< Measurements of the planned rounds for which there was no time.
  double beyond_limit_s = 0;          ///< Time of essential measurements beyond the limit.
  std::size_t unsettled = 0;          ///< Subjects whose rounds do not agree.
  std::size_t postponed = 0;          ///< Measurements that had to wait because the device was not as found.
  std::vector<std::string> refusals;  ///< Measurements that could not be trusted, with the reason.
  std::int64_t throttled = 0;         ///< Runs discarded.
  std::int64_t impossible = 0;
};

/// Measures everything in the plan that the journal does not hold yet, and writes every measurement to the journal at
/// once. Essential subjects come first, in one round that no time limit ends: a busy machine gets a profile, too. Then
/// come the most important ones, in `rounds` rounds, each in an order of its own (drawn from the seed). The remaining
/// time goes to further rounds of subjects that have too few of them or whose rounds do not agree, because some of
/// those were disturbed. The last tenth of the time limit is for doubtful subjects. Subjects for which the device is
/// not ready wait until it is as found again, behind all others, and for at most half a minute when nothing else is
/// left. Errors of the device pass through; the journal keeps all measurements so far.
[[nodiscard]] SessionResult run_session(Device& device, const std::vector<Planned>& plan, SampleJournal& journal,
                                        const SessionOptions& options);

}  // namespace hdpsim::calib
