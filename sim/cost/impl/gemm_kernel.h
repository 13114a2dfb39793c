#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "sim/cost/impl/log_curve.h"
#include "sim/model/operation.h"
#include "sim/profile/device_profile.h"

namespace hdpsim {

/// The tile of a product that one multiprocessor computes at a time.
struct GemmTile {
  std::int64_t m = 0;
  std::int64_t n = 0;
};

/// FLOPs of a product in whole tiles and, beyond one wave, in whole waves of the multiprocessors.
[[nodiscard]] double wave_rounded_work(const GemmTile& tile, std::int64_t multiprocessors, const Gemm& op);

/// Matrix products: wave-rounded work at an efficiency that depends on the work or, for measured weight shapes (n, k),
/// on m.
///
/// A product is cut in tiles that the multiprocessors compute in waves; its last wave takes as long as a full one. So a
/// product of more than one wave costs ceil(tiles / multiprocessors) full waves, and samples by shape are read that way
/// too. A product of less than a wave is not charged for idle multiprocessors: libraries then use smaller tiles or
/// split k, and the loss is in the falloff of the efficiency with work. Samples by work are of products that fill their
/// waves.
///
/// No product is faster than what it reads and writes at `memory`, the bandwidth that kernels reach. This limits
/// batches of products over a short inner side, as in unfused attention: PyTorch's bmm of 512 x (1024 x 128 x 1024) in
/// bf16 takes 1.04 ms on an A100 (pytorch#83272), its 1.34 GB at 1.3 TB/s.
class GemmKernel {
 public:
  GemmKernel(const GemmTable& table, const Datasheet& datasheet, Bandwidth memory);

  struct Cost {
    double seconds = 0;
    bool sampled = false;  ///< The shape is a sample's.
    bool extrapolated = false;
  };
  [[nodiscard]] Cost cost(const Gemm& op) const;

 private:
  struct WeightShape {
    LogCurve efficiency;                     // by m
    std::map<std::int64_t, double> seconds;  // times of the samples, by m
  };

  GemmTile tile_;
  std::int64_t multiprocessors_;
  double launch_seconds_;
  double full_rate_;                                                       // FLOP/s
  double memory_bandwidth_;                                                // B/s
  LogCurve by_work_;                                                       // efficiency by wave-rounded FLOPs
  std::map<std::pair<std::int64_t, std::int64_t>, WeightShape> by_shape_;  // by (n, k)
};

}  // namespace hdpsim
