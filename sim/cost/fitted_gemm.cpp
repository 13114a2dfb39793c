#include "sim/cost/fitted_gemm.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/cost/impl/formula.h"

namespace hdpsim {
namespace {

constexpr double bf16_bytes = 2;
constexpr double octave = 1;
constexpr std::size_t most_neighbours = 16;
// In squared octaves: below it two shapes count as equally near, so that no single sample decides alone.
constexpr double same_shape = 1e-4;

double squared(double x) {
  return x * x;
}

}  // namespace

FittedGemm::FittedGemm(const GemmFit& fit, const GemmTable& table, std::int64_t multiprocessors)
    : fit_(fit), tile_{table.tile_m, table.tile_n}, multiprocessors_(multiprocessors) {
  samples_.reserve(table.by_shape.size());
  const auto widen = [&](Side& side, double at) {
    side = samples_.empty() ? Side{at, at} : Side{std::min(side.least, at), std::max(side.most, at)};
  };
  for (const GemmShapeSample& sample : table.by_shape) {
    const Gemm op{sample.m, sample.n, sample.k};
    const Point at = point(op);
    widen(m_, at.m);
    widen(n_, at.n);
    widen(k_, at.k);
    samples_.push_back({at, std::log(sample.time.seconds() / law_seconds(op))});
    seconds_[op] = sample.time.seconds();
  }
}

FittedGemm::Point FittedGemm::point(const Gemm& op) {
  return {std::log2(static_cast<double>(op.m)), std::log2(static_cast<double>(op.n)),
          std::log2(static_cast<double>(op.k))};
}

double FittedGemm::law_seconds(const Gemm& op) const {
  return fit_.launch_s + fit_.flop_s * wave_rounded_work(tile_, multiprocessors_, op) +
         fit_.element_s * gemm_bytes(op) / bf16_bytes;
}

double FittedGemm::log_ratio(const Point& at, double& nearest) const {
  // The nearest samples by insertion: there are at most most_neighbours of them.
  struct Near {
    double distance;
    double log_ratio;
  };
  std::array<Near, most_neighbours> near{};
  const std::size_t wanted = std::min({static_cast<std::size_t>(fit_.neighbours), most_neighbours, samples_.size()});
  std::size_t found = 0;
  for (const Sample& sample : samples_) {
    const double distance = squared(sample.at.m - at.m) + squared(sample.at.n - at.n) + squared(sample.at.k - at.k);
    if (found == wanted && (wanted == 0 || distance >= near[found - 1].distance)) continue;
    std::size_t place = found < wanted ? found++ : found - 1;
    for (; place > 0 && near[place - 1].distance > distance; --place) near[place] = near[place - 1];
    near[place] = {distance, sample.log_ratio};
  }
  nearest = found == 0 ? 0 : near[0].distance;
  double weights = 0;
  double sum = 0;
  for (std::size_t i = 0; i < found; ++i) {
    const double weight = std::pow(near[i].distance + same_shape, -fit_.power / 2);
    weights += weight;
    sum += weight * near[i].log_ratio;
  }
  return found == 0 ? 0 : sum / weights;
}

FittedGemm::Cost FittedGemm::cost(const Gemm& op) const {
  if (const auto sample = seconds_.find(op); sample != seconds_.end()) return {sample->second, true, false};
  const Point at = point(op);
  double nearest = 0;
  const double ratio = std::exp(log_ratio(at, nearest));
  const auto beyond = [](const Side& side, double x) { return x < side.least || x > side.most; };
  const bool outside = nearest > squared(octave) || beyond(m_, at.m) || beyond(n_, at.n) || beyond(k_, at.k);
  return {law_seconds(op) * ratio, false, outside};
}

}  // namespace hdpsim
