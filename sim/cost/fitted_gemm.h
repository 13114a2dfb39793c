#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "sim/cost/impl/sampled_kernels.h"
#include "sim/model/operation.h"
#include "sim/profile/device_profile.h"

namespace hdpsim {

/// Matrix products by their fit and the samples of their table: a law, corrected by the interpolated ratios of the
/// samples to it. Calibration leaves samples out of the table to see how well this very code predicts them.
class FittedGemm {
 public:
  FittedGemm(const GemmFit& fit, const GemmTable& table, std::int64_t multiprocessors);

  struct Cost {
    double seconds = 0;
    bool sampled = false;  ///< The shape is a sample's.
    bool outside = false;  ///< More than an octave from all samples, or beyond the measured sides.
  };
  [[nodiscard]] Cost cost(const Gemm& op) const;
  /// The law alone, without the samples.
  [[nodiscard]] double law_seconds(const Gemm& op) const;

 private:
  struct Point {
    double m;  ///< log2 of the side m; n and k alike.
    double n;
    double k;
  };
  struct Sample {
    Point at;
    double log_ratio;  ///< Logarithm of time over law.
  };
  struct Side {
    double least;
    double most;
  };
  [[nodiscard]] static Point point(const Gemm& op);
  [[nodiscard]] double log_ratio(const Point& at, double& nearest) const;

  GemmFit fit_;
  GemmTile tile_;
  std::int64_t multiprocessors_;
  std::vector<Sample> samples_;
  std::map<Gemm, double> seconds_;  // times of the samples
  Side m_{}, n_{}, k_{};
};

}  // namespace hdpsim
