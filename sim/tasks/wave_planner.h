#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/tasks/scaling_curve.h"

namespace hdpsim {

// The allocation of Spindle (arXiv 2409.03365, section 3): independent runs of equal operators share devices.

/// A run of equal operators, one after another.
struct OperatorRun {
  std::int64_t operators = 1;
  ScalingCurve curve;
};

/// Devices of each run, of any fraction, with which all runs end together.
struct LevelOptimum {
  double seconds = 0;           ///< No schedule of the runs is shorter, if their curves are their envelopes.
  std::vector<double> devices;  ///< In the order of the runs; together at most those that there are.
};

/// The continuous optimum of independent runs on so many devices, by bisection of its time. A run that is too slow on
/// any number of devices decides the time alone; the others then have only the devices that they need.
[[nodiscard]] LevelOptimum level_optimum(const std::vector<OperatorRun>& runs, std::int64_t devices);

/// A part of a run on the two points of its curve around an allocation: operators of `upper` on the larger one, the
/// others on the smaller one. In the mean over `seconds` it has the devices of the allocation.
struct TwoPoints {
  std::int64_t lower_devices = 0;  ///< 0: the devices are idle in what is left of the time.
  double lower = 0;                ///< Operators.
  std::int64_t upper_devices = 0;
  double upper = 0;
};

/// lower + upper = operators, and together they take `seconds`; all are on the upper point where there is no lower one,
/// or where the time is longer than they take there.
[[nodiscard]] TwoPoints two_points(const OperatorRun& run, double devices, double seconds);

/// Operators of a run on so many devices.
struct RunPart {
  std::size_t run = 0;
  std::int64_t devices = 1;
  std::int64_t operators = 1;
};

/// Whole operators, rounded to the nearest; none has 0.
[[nodiscard]] std::vector<RunPart> rounded_parts(std::size_t run, const TwoPoints& points);

/// Parts of different runs at the same time. Between waves devices change hands.
struct Wave {
  std::vector<RunPart> parts;
  double seconds = 0;  ///< Of the longest part.
};

/// The parts as waves. A wave takes the parts, one of each run, that fill most of the devices, among as many those with
/// most time left. Devices that are left widen a part to the next point of its curve, that with the longest time first.
/// The wave ends with one of its parts. Of longer parts as many operators run as fit, at least one; shorter ones run as
/// a whole. Hence there are at most as many waves as parts. The end is the last one with which devices compute as much
/// of the time as with the best one, or a certain share of that: several shares are tried, and the shortest waves
/// taken.
[[nodiscard]] std::vector<Wave> waves_of(const std::vector<OperatorRun>& runs, const std::vector<RunPart>& parts,
                                         std::int64_t devices);

/// All of it: the optimum, its two points, rounded, in waves; or each run on the nearest point, where that is shorter.
struct LevelPlan {
  LevelOptimum optimum;
  std::vector<Wave> waves;

  [[nodiscard]] double seconds() const;
};
/// Every run has a point with at most `devices` devices (checked).
[[nodiscard]] LevelPlan plan_level(const std::vector<OperatorRun>& runs, std::int64_t devices);

}  // namespace hdpsim
