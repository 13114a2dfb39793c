#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "calib/fit/samples.h"

namespace hdpsim::calib {

/// What the bandwidths of a table say of its number of ranks: bus over algorithm bandwidth is bus_factor() of the
/// collective. They are printed in hundredths of a GB/s, which leaves a range.
class BandwidthRatio {
 public:
  /// One row, in GB/s.
  void add(double algorithm, double bus);
  /// Whether a collective of so many ranks has bandwidths as these.
  [[nodiscard]] bool holds(MessageKind kind, std::int64_t ranks) const;
  /// The numbers of ranks that do, for people: "16 ranks"; empty if there are none.
  [[nodiscard]] std::string ranks_text(MessageKind kind) const;

 private:
  double least_ = 0;
  double most_ = std::numeric_limits<double>::infinity();
};

}  // namespace hdpsim::calib
