#include "sim/trace/quantile_table.h"

#include <algorithm>
#include <cmath>

#include "sim/base/check.h"

namespace hdpsim {
namespace {

constexpr double tail_from = 0.99;
constexpr double finest = 1e-7;  // 1 - quantile of the last point before 1

// Rounded so that a table prints in a few digits; the spacing of the points is a choice, not a result.
double eight_digits(double quantile) {
  return std::round(quantile * 1e8) / 1e8;
}

std::vector<double> places(int points, double last_gap) {
  HDPSIM_CHECK(points >= 16, "points = {}", points);
  const int tail = points / 4;
  const int body = points - tail;
  std::vector<double> places;
  places.reserve(static_cast<std::size_t>(points));
  for (int i = 0; i < body; ++i) places.push_back(eight_digits(tail_from * i / body));
  const double ratio = std::log(last_gap / (1 - tail_from)) / (tail - 2);
  for (int i = 0; i < tail - 1; ++i) places.push_back(eight_digits(1 - (1 - tail_from) * std::exp(ratio * i)));
  places.push_back(1);
  places.erase(std::unique(places.begin(), places.end()), places.end());
  return places;
}

// A point between two of its own length is redundant.
std::vector<QuantilePoint> thinned(const std::vector<QuantilePoint>& table) {
  std::vector<QuantilePoint> kept;
  for (std::size_t i = 0; i < table.size(); ++i) {
    const bool inner = i > 0 && i + 1 < table.size();
    if (inner && table[i - 1].length == table[i].length && table[i + 1].length == table[i].length) continue;
    kept.push_back(table[i]);
  }
  return kept;
}

}  // namespace

std::vector<QuantilePoint> quantile_table(const LengthTally& lengths, int points) {
  const auto count = static_cast<double>(lengths.total().count);
  std::vector<QuantilePoint> table;
  for (const double place : places(points, std::clamp(1 / count, finest, (1 - tail_from) / 2))) {
    table.push_back({place, place == 0 ? lengths.min() : lengths.quantile(place)});
  }
  return thinned(table);
}

std::vector<QuantilePoint> quantile_table(const LengthDistribution& lengths, int points) {
  std::vector<QuantilePoint> table;
  for (const double place : places(points, finest)) table.push_back({place, lengths.quantile(place)});
  return thinned(table);
}

}  // namespace hdpsim
