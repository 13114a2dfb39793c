#pragma once

#include <optional>
#include <vector>

#include "calib/fit/samples.h"
#include "sim/base/units.h"
#include "sim/profile/device_profile.h"
#include "sim/profile/profile_fits.h"

namespace hdpsim::calib {

/// The bandwidth of a line's slope, within what a profile may state (limits::bandwidth). A slope of (nearly) zero,
/// which samples of too few sizes or of a busy machine may have, gives the largest one.
[[nodiscard]] Bandwidth bandwidth_of(double seconds_per_byte);

/// A rate rounded to seven digits, which a file can state and which reads back exactly.
[[nodiscard]] FlopRate rate_of(double flops_per_second);

/// The spread of a timing; empty if the timing does not contain it.
[[nodiscard]] std::optional<Spread> spread_of(const Timing& timing);

/// The equations of a linear law: time = sum over terms of coefficient x feature, with a row per sample.
struct Equations {
  std::vector<std::vector<double>> features;  ///< By sample, then by term.
  std::vector<double> seconds;                ///< Measured times; positive.
};

/// The coefficients, none negative, that minimise the sum of squared *relative* errors,
///
///   sum over samples of w_i ((sum over terms of c_j x_ij) / t_i - 1)^2,
///
/// by the active-set method of Lawson and Hanson (Solving Least Squares Problems, 1974, chapter 23). The weights are
/// Huber's, iterated: a sample that lies several times the typical error off (a disturbed measurement) counts
/// linearly, not squared.
///
/// A term whose features are all zero gets zero. No samples: all coefficients are zero.
[[nodiscard]] std::vector<double> relative_least_squares(const Equations& equations);

/// The law at one sample.
[[nodiscard]] double evaluate(const std::vector<double>& coefficients, const std::vector<double>& features);

/// Sizes and times of transfers, the smallest first.
struct Transfers {
  std::vector<double> bytes;
  std::vector<double> seconds;
};

template <class Sample>
[[nodiscard]] Transfers transfers_of(const std::vector<Sample>& by_size) {
  Transfers transfers;
  for (const Sample& sample : by_size) {
    transfers.bytes.push_back(static_cast<double>(sample.bytes.count()));
    transfers.seconds.push_back(sample.time.seconds());
  }
  return transfers;
}

/// A line: latency + bytes x byte_s.
struct Line {
  double latency_s = 0;
  double byte_s = 0;
};
[[nodiscard]] Line fit_line(const std::vector<double>& bytes, const std::vector<double>& seconds);

/// How the cost of a byte may change with the size of a transfer. Rising: it never falls, since caches hold smaller
/// transfers, and the latency explains other losses of small ones. Free: it may fall too, as when larger messages are
/// cut into pieces that overlap.
enum class ByteCosts { rising, free };

/// A curve over [least, most] with a knot every `octaves_between_knots` octaves; 0: one knot.
[[nodiscard]] TransferCurve fit_curve(const Transfers& transfers, double least, double most, int octaves_between_knots,
                                      ByteCosts costs = ByteCosts::rising);

/// The form in words: "latency + bytes", "latency + bytes, the cost of a byte by size (every 2 octaves)".
[[nodiscard]] std::string curve_form(int octaves_between_knots);

}  // namespace hdpsim::calib
