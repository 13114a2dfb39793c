#include "sim/cost/impl/gemm_kernel.h"

#include <algorithm>

#include "sim/base/division.h"
#include "sim/cost/impl/formula.h"

namespace hdpsim {

double wave_rounded_work(const GemmTile& tile, std::int64_t multiprocessors, const Gemm& op) {
  const std::int64_t tiles = divided(op.m, tile.m) * divided(op.n, tile.n);
  const std::int64_t waves = divided(tiles, multiprocessors);
  const std::int64_t charged = waves > 1 ? waves * multiprocessors : tiles;
  return 2.0 * static_cast<double>(charged * tile.m * tile.n) * static_cast<double>(op.k);
}

GemmKernel::GemmKernel(const GemmTable& table, const Datasheet& datasheet, Bandwidth memory)
    : tile_{table.tile_m, table.tile_n},
      multiprocessors_(datasheet.multiprocessors),
      launch_seconds_(table.launch.seconds()),
      full_rate_(table.full_rate.per_second()),
      memory_bandwidth_(static_cast<double>(memory.bytes_per_second())) {
  constexpr double flop_per_gflop = 1e9;
  for (const GemmWorkSample& sample : table.by_work) by_work_.add(sample.gflop * flop_per_gflop, sample.efficiency);
  for (const GemmShapeSample& sample : table.by_shape) {
    const double work = wave_rounded_work(tile_, multiprocessors_, {sample.m, sample.n, sample.k});
    const double efficiency = work / ((sample.time.seconds() - launch_seconds_) * full_rate_);
    WeightShape& shape = by_shape_[{sample.n, sample.k}];
    shape.efficiency.add(static_cast<double>(sample.m), efficiency);
    shape.seconds[sample.m] = sample.time.seconds();
    by_work_.add(work, efficiency);
  }
}

GemmKernel::Cost GemmKernel::cost(const Gemm& op) const {
  const double work = wave_rounded_work(tile_, multiprocessors_, op);
  const auto m = static_cast<double>(op.m);
  double efficiency = 0;
  bool covered = false;
  const auto shape = by_shape_.empty() ? by_shape_.end() : by_shape_.find({op.n, op.k});
  if (shape != by_shape_.end()) {
    const auto sample = shape->second.seconds.find(op.m);
    if (sample != shape->second.seconds.end()) return {sample->second, true, false};
    efficiency = shape->second.efficiency.at(m);
    covered = shape->second.efficiency.covers(m);
  } else {
    efficiency = by_work_.at(work);
    covered = by_work_.covers(work);
  }
  const double seconds = std::max(work / (efficiency * full_rate_), gemm_bytes(op) / memory_bandwidth_);
  return {launch_seconds_ + seconds, false, !covered};
}

}  // namespace hdpsim
