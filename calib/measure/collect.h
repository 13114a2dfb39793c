#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "calib/fit/samples.h"
#include "calib/measure/device.h"
#include "calib/measure/subject.h"

namespace hdpsim::calib {

/// Which quantile of its rounds' medians is what a subject takes. What slows a round of a kernel is others' work or
/// heat, never its own, but the fastest round is one of luck, when others left more of the clock and the caches: the
/// lower quartile. A message finds its data in one cache or in another, and takes twice as long or half: the median.
[[nodiscard]] double quantile_of_rounds(const Subject& subject);

/// The input of the fit: rounds of one subject, at one speed of memory, pooled into one timing, and for every family
/// how far halves of the rounds lie apart. Subjects keep the order in which they were first measured in `measurements`.
[[nodiscard]] Samples collect(const Circumstances& circumstances, const std::vector<Measurement>& measurements);

/// What the samples are of, interference apart.
[[nodiscard]] std::vector<Subject> subjects_of(const Samples& samples);

/// A line needs two samples, a bend in it one more, and another tells whether they are right.
inline constexpr std::size_t least_samples = 4;

/// What the fit draws one curve through, for people: "attention forward causal d128", "matrix products".
[[nodiscard]] std::string curve_of(const Subject& subject);

/// Takes out the curves that have too few samples to say anything between and beyond them, as a calibration leaves
/// behind that was cut short: no fit is better than one through two points. Returns what was taken out and how many
/// samples it had, for people.
[[nodiscard]] std::vector<std::string> leave_out_thin_curves(Samples& samples);

/// What the smallest kernel takes on a device: the addition of one number.
[[nodiscard]] double launch_seconds(Device& device);

}  // namespace hdpsim::calib
