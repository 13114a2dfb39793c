#pragma once

#include <vector>

#include "sim/profile/profile_fits.h"

namespace hdpsim::calib {

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
