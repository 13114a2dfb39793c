#include "sim/trace/length_tally.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "sim/base/check.h"
#include "sim/trace/length_distribution.h"

namespace hdpsim {
namespace {

// Cells are indexed by n = tokens - 1, so that an octave of n, [2^k, 2^(k+1)), is the octave (2^k, 2^(k+1)] of tokens.
constexpr int cells_per_octave_log2 = 10;
constexpr std::uint64_t cells_per_octave = 1 << cells_per_octave_log2;
constexpr std::uint64_t single_cells = 2 * cells_per_octave;  // one length each

int octave_of(std::uint64_t n) {
  return static_cast<int>(std::bit_width(n | 1)) - 1;
}

std::size_t cell_of(std::uint64_t n) {
  if (n < single_cells) return n;
  const int octave = octave_of(n);
  const std::uint64_t within = (n >> (octave - cells_per_octave_log2)) - cells_per_octave;
  return single_cells + static_cast<std::uint64_t>(octave - cells_per_octave_log2 - 1) * cells_per_octave + within;
}

std::int64_t longest_in(std::size_t cell) {
  if (cell < single_cells) return static_cast<std::int64_t>(cell) + 1;
  const std::uint64_t octave = (cell - single_cells) / cells_per_octave + cells_per_octave_log2 + 1;
  const std::uint64_t within = (cell - single_cells) % cells_per_octave;
  return static_cast<std::int64_t>((cells_per_octave + within + 1) << (octave - cells_per_octave_log2));
}

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

void LengthTally::add(std::int64_t tokens) {
  HDPSIM_CHECK(tokens >= 1 && tokens <= longest_length, "tokens = {}", tokens);
  const auto n = static_cast<std::uint64_t>(tokens) - 1;
  const std::size_t index = cell_of(n);
  if (index >= cells_.size()) cells_.resize(index + 1);
  Cell& cell = cells_[index];
  ++cell.count;
  cell.tokens += tokens;
  for (Sums* sums : {&octave_[static_cast<std::size_t>(octave_of(n))], &total_}) {
    ++sums->count;
    sums->tokens += tokens;
    sums->squares += Int128{tokens} * tokens;
  }
  min_ = total_.count == 1 ? tokens : std::min(min_, tokens);
  max_ = std::max(max_, tokens);
}

LengthTally::Sums LengthTally::above(int exponent) const {
  HDPSIM_CHECK(exponent >= 1 && exponent <= static_cast<int>(octaves), "exponent = {}", exponent);
  Sums above;
  for (auto octave = static_cast<std::size_t>(exponent); octave < octaves; ++octave) {
    above.count += octave_[octave].count;
    above.tokens += octave_[octave].tokens;
    above.squares += octave_[octave].squares;
  }
  return above;
}

std::int64_t LengthTally::quantile(double quantile) const {
  HDPSIM_CHECK(total_.count > 0 && quantile >= 0 && quantile <= 1, "{} lengths, quantile {}", total_.count, quantile);
  // 0.07 x 100 is a little more than 7 in binary, which must not give place 8.
  const double exact = quantile * static_cast<double>(total_.count);
  const auto place = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(exact * (1 - 1e-14))));
  if (place >= total_.count) return max_;
  std::int64_t passed = 0;
  const auto cell =
      std::find_if(cells_.begin(), cells_.end(), [&](const Cell& c) { return (passed += c.count) >= place; });
  const double mean = static_cast<double>(cell->tokens) / static_cast<double>(cell->count);
  return std::clamp<std::int64_t>(std::llround(mean), min_, max_);
}

std::vector<LengthTally::Bucket> LengthTally::buckets() const {
  std::vector<Bucket> buckets;
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    const Cell& cell = cells_[i];
    if (cell.count == 0) continue;
    const double mean = static_cast<double>(cell.tokens) / static_cast<double>(cell.count);
    buckets.push_back({i == 0 ? 1 : longest_in(i - 1) + 1, longest_in(i), cell.count, mean});
  }
  return buckets;
}

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
