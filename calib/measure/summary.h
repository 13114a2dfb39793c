#pragma once

#include <span>
#include <vector>

#include "calib/fit/samples.h"

namespace hdpsim::calib {

/// The value that a share `at` of the sorted samples does not exceed, linear between samples. At least one sample.
[[nodiscard]] double percentile(std::span<const double> sorted, double at);

/// Median, p10, p90, standard deviation over mean. At least one sample.
[[nodiscard]] Timing summary(std::span<const double> seconds);

/// Standard error of the median over the median, for samples whose middle half is normal:
/// 1.2533 (p75 - p25) / 1.349 / sqrt(n) / median. Outliers, which a shared machine always has, do not inflate it.
/// Infinite below three samples.
[[nodiscard]] double noise_of_median(std::span<const double> seconds);

/// Several rounds of one subject as one: the median that a share `at` of the medians does not exceed; the extremes of
/// p10 and p90, the largest cv, all runs.
[[nodiscard]] Timing pooled(std::span<const Timing> rounds, double at);

/// The uncertainty of pooled(): the distance between the quantiles one standard error of a rank, sqrt(at (1 - at) /
/// rounds), below and above `at`, as a share of the one at `at`. At least one round.
[[nodiscard]] double uncertainty_of_quantile(std::span<const double> medians, double at);

/// The gap between the pooled medians of two halves of the rounds (every second one), as a share of the mean. At least
/// two rounds, in the order in which they were measured.
[[nodiscard]] double gap_of_halves(std::span<const double> medians, double at);

}  // namespace hdpsim::calib
