#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "calib/fit/samples.h"
#include "calib/measure/subject.h"

namespace hdpsim::calib {

/// The quantile of its rounds' medians that is taken for a subject. Rounds of a kernel are only slowed by other
/// programs or heat, never by the kernel itself, but the fastest round is a lucky one, when others left more of the
/// clock and the caches: the lower quartile. A message finds its data in one cache or in another, and takes twice as
/// long or half: the median.
[[nodiscard]] double quantile_of_rounds(const Subject& subject);

/// The input of the fit: rounds of one subject, at one speed of memory, pooled into one timing, and for every family
/// the gap between halves of the rounds. Subjects keep the order in which they were first measured in `measurements`.
[[nodiscard]] Samples collect(const Circumstances& circumstances, const std::vector<Measurement>& measurements);

/// The subjects of the samples, except interference.
[[nodiscard]] std::vector<Subject> subjects_of(const Samples& samples);

/// Two samples for a line, one more for a bend in it, and another one to check them.
inline constexpr std::size_t least_samples = 4;

/// The curve of the fit to which a subject belongs, for people: "attention forward causal d128", "matrix products".
[[nodiscard]] std::string curve_of(const Subject& subject);

/// Removes curves with too few samples to predict anything between and beyond them, as a calibration that was cut short
/// leaves: a fit is never better than one through two points. Returns the removed curves and their numbers of samples,
/// for people.
[[nodiscard]] std::vector<std::string> leave_out_thin_curves(Samples& samples);

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
