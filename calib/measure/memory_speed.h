#pragma once

#include <vector>

#include "calib/measure/subject.h"

namespace hdpsim::calib {

/// The measurements corrected to the same speed of memory.
///
/// On a shared machine others use the memory, for minutes: emptying the caches then takes up to twice as long, and
/// kernels that start cold take longer, too, the shorter they are the more. So a kernel's time is modelled as t = c x
/// emptying^s, with s the median of the slopes between pairs of its rounds (the estimator of Theil and Sen, which is
/// robust against other disturbances), limited to 0 ... 1, and is corrected to the lower quartile of emptying over all
/// measurements. Subjects whose rounds do not agree better then (uncertainty_of_quantile), those of too few rounds to
/// tell, and measurements without emptying_s stay as they are. O(rounds^2) per subject.
[[nodiscard]] std::vector<Measurement> at_one_speed_of_memory(std::vector<Measurement> measurements);

}  // namespace hdpsim::calib
