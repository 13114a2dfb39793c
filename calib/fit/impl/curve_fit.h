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

/// latency + bytes x byte_s.
struct Line {
  double latency_s = 0;
  double byte_s = 0;
};
[[nodiscard]] Line fit_line(const std::vector<double>& bytes, const std::vector<double>& seconds);

/// What a byte of a larger transfer costs. Rising: never less, since caches hold the smaller ones, and what small ones
/// lose otherwise is the latency. Free: anything, as where larger messages are cut into pieces that overlap.
enum class ByteCosts { rising, free };

/// A curve with a knot every so many octaves over [least, most]; 0: one knot.
[[nodiscard]] TransferCurve fit_curve(const Transfers& transfers, double least, double most, int octaves_between_knots,
                                      ByteCosts costs = ByteCosts::rising);

/// "latency + bytes", "latency + bytes, the cost of a byte by size (every 2 octaves)".
[[nodiscard]] std::string curve_form(int octaves_between_knots);

}  // namespace hdpsim::calib
