#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "calib/measure/device.h"
#include "calib/measure/repeat.h"
#include "calib/measure/subject.h"
#include "sim/model/transformer.h"

namespace hdpsim::calib {

/// What a calibration should cover, and how long it may take.
struct Wishes {
  double budget_s = 180;                  ///< Expected time of all rounds.
  double time_limit_s = 450;              ///< Measurements that are not made by then are omitted.
  double sampling_s = 0.1;                ///< Most time for the samples of one subject in one round.
  int long_runs = 3;                      ///< Least number of runs, even if they take longer than that.
  double noise = 0.005;                   ///< Sampling stops early when the median is known this well.
  int rounds = 2;                         ///< Rounds of every subject, each in another order.
  int least_rounds = 2;                   ///< Rounds also of subjects whose rounds agree, while there is time.
  int most_rounds = 12;                   ///< Rounds of subjects whose rounds do not agree, while there is time.
  bool messages = true;                   ///< False if they come from a file of nccl-tests.
  std::optional<Transformer> model = {};  ///< Its matrix products come first.
  std::uint64_t seed = 1;                 ///< Seed of document lengths, tensors and the order.
};

/// A full calibration, which ends within 8 minutes, and a quick one, within 90 seconds. They plan for less: estimates
/// may be too low, and other programs may take their share of the machine.
[[nodiscard]] Wishes full_wishes();
[[nodiscard]] Wishes quick_wishes();
/// The same wishes for a calibration that has to end within `seconds`: fewer subjects, fewer samples of each.
[[nodiscard]] Wishes wishes_within(double seconds, Wishes wishes);

/// One subject and its expected seconds per round, preparation included.
struct Planned {
  Subject subject;
  double expected_s = 0;
  int level = 0;           ///< Low levels matter most.
  bool essential = false;  ///< A profile needs it: measured once before all others, whatever it takes.
};

/// The subjects to measure on a device of this speed within the budget. Every family has a share of the budget; within
/// it the subjects come in levels (sparse grids over the whole range first, then the points between), the cheap ones of
/// a level before the expensive ones, as many as fit. A slow device thus gets the same curves over a smaller range. The
/// least that curves of kernels need is essential: if the budget does not suffice for it, the cheapest subjects are
/// taken beyond it.
[[nodiscard]] std::vector<Planned> plan_measurements(Device& device, const DeviceSpeed& speed, const Wishes& wishes);

/// The same wishes where other programs share the device: many short rounds, spread over the whole calibration, and
/// samples take less of the device's time, so that as many subjects can be measured.
[[nodiscard]] Wishes wishes_on(const DeviceSpeed& speed, Wishes wishes);

/// The stopping rule for the measurements of a plan.
[[nodiscard]] StoppingRule stopping_rule(const Wishes& wishes);

}  // namespace hdpsim::calib
