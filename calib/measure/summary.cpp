#include "calib/measure/summary.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "sim/base/check.h"

namespace hdpsim::calib {
namespace {

std::vector<double> sorted_copy(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

double coefficient_of_variation(std::span<const double> values) {
  const double count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return values.size() < 2 ? 0 : std::sqrt(squares / (count - 1)) / mean;
}

}  // namespace

double percentile(std::span<const double> sorted, double at) {
  HDPSIM_CHECK(!sorted.empty(), "no samples");
  const double place = at * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double share = place - static_cast<double>(below);
  return sorted[below] + share * (sorted[above] - sorted[below]);
}

Timing summary(std::span<const double> seconds) {
  const std::vector<double> sorted = sorted_copy(seconds);
  return {.median_s = percentile(sorted, 0.5),
          .p10_s = percentile(sorted, 0.1),
          .p90_s = percentile(sorted, 0.9),
          .cv = coefficient_of_variation(sorted),
          .runs = static_cast<std::int64_t>(sorted.size())};
}

double noise_of_median(std::span<const double> seconds) {
  if (seconds.size() < 3) return std::numeric_limits<double>::infinity();
  const std::vector<double> sorted = sorted_copy(seconds);
  const double deviation = (percentile(sorted, 0.75) - percentile(sorted, 0.25)) / 1.349;
  return 1.2533 * deviation / std::sqrt(static_cast<double>(sorted.size())) / percentile(sorted, 0.5);
}

Timing pooled(std::span<const Timing> rounds, double at) {
  HDPSIM_CHECK(!rounds.empty(), "no rounds");
  Timing all = rounds.front();
  std::vector<double> medians = {all.median_s};
  for (const Timing& round : rounds.subspan(1)) {
    medians.push_back(round.median_s);
    all.p10_s = std::min(all.p10_s, round.p10_s);
    all.p90_s = std::max(all.p90_s, round.p90_s);
    all.cv = std::max(all.cv, round.cv);
    all.runs += round.runs;
  }
  all.median_s = percentile(sorted_copy(medians), at);
  return all;
}

double uncertainty_of_quantile(std::span<const double> medians, double at) {
  const std::vector<double> sorted = sorted_copy(medians);
  const double rank_error = std::sqrt(at * (1 - at) / static_cast<double>(sorted.size()));
  const double below = percentile(sorted, std::max(0.0, at - rank_error));
  const double above = percentile(sorted, std::min(1.0, at + rank_error));
  return (above - below) / percentile(sorted, at);
}

double gap_of_halves(std::span<const double> medians, double at) {
  HDPSIM_CHECK(medians.size() >= 2, "a gap between halves of {} medians", medians.size());
  std::array<std::vector<double>, 2> halves;
  for (std::size_t round = 0; round < medians.size(); ++round) halves[round % 2].push_back(medians[round]);
  const double a = percentile(sorted_copy(halves[0]), at);
  const double b = percentile(sorted_copy(halves[1]), at);
  return std::abs(a - b) / ((a + b) / 2);
}

}  // namespace hdpsim::calib
