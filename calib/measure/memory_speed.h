#pragma once

#include <vector>

#include "calib/measure/subject.h"

namespace hdpsim::calib {

/// The measurements as they would be had memory been equally fast in all of them.
///
/// On a shared machine others use the memory, for minutes: emptying the caches takes up to twice as long then, and
/// kernels that start cold take longer, too, the more the shorter they are. So a kernel's time t is taken for
/// t = c x emptying^s, with s the median of the slopes between pairs of its rounds (Theil and Sen's estimator, which
/// other disturbances do not lead astray), not below 0 nor above 1, and brought to the lower quartile of emptying over
/// all measurements. Subjects whose rounds do not agree better then (uncertainty_of_quantile), those of too few rounds
/// to tell and measurements without emptying_s stay as they are. O(rounds^2) a subject.
[[nodiscard]] std::vector<Measurement> at_one_speed_of_memory(std::vector<Measurement> measurements);

}  // namespace hdpsim::calib
