#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/base/units.h"
#include "sim/trace/length_distribution.h"

namespace hdpsim {

/// Counts lengths in logarithmic buckets: lengths up to 2048 have a bucket each, every octave (2^k, 2^(k+1)] above has
/// 1024 of equal width. Memory grows with the longest length alone, to 2 MB at most; a quantile is off by less than
/// 0.1 % of its value; counts and sums over the lengths above a power of two are exact.
class LengthTally {
 public:
  struct Bucket {
    std::int64_t lower = 0;  ///< The shortest length that belongs to the bucket,
    std::int64_t upper = 0;  ///< and the longest.
    std::int64_t count = 0;  ///< Documents.
    double mean = 0;         ///< Mean length of its documents.
  };
  /// Exact sums over lengths.
  struct Sums {
    std::int64_t count = 0;
    Int128 tokens = 0;
    Int128 squares = 0;  ///< Sum of s^2.
  };

  /// Requires 1 <= tokens <= longest_length (checked).
  void add(std::int64_t tokens);

  [[nodiscard]] const Sums& total() const { return total_; }
  [[nodiscard]] std::int64_t min() const { return min_; }
  [[nodiscard]] std::int64_t max() const { return max_; }
  /// Sums over the lengths above 2^exponent, for an exponent from 1 to 40 (checked).
  [[nodiscard]] Sums above(int exponent) const;
  /// The length of the document at place ceil(quantile x count) of the sorted lengths, 0 <= quantile <= 1.
  /// Requires at least one length (checked).
  [[nodiscard]] std::int64_t quantile(double quantile) const;
  /// The non-empty buckets, ascending.
  [[nodiscard]] std::vector<Bucket> buckets() const;

 private:
  static constexpr std::size_t octaves = 40;
  struct Cell {
    std::int64_t count = 0;
    Int128 tokens = 0;
  };
  std::vector<Cell> cells_;             // up to the cell of the longest length
  std::array<Sums, octaves> octave_{};  // sums over (2^k, 2^(k+1)]; the first one also holds the length 1
  Sums total_;
  std::int64_t min_ = 0;
  std::int64_t max_ = 0;
};

/// About `points` points (at least 16) of a distribution of lengths, from the shortest to the longest: three quarters
/// of them evenly spaced up to quantile 0.99, the others in equal ratios of 1 - quantile down to one document (at least
/// 1e-7), because few long documents hold much of the tokens. Redundant points are omitted.
[[nodiscard]] std::vector<QuantilePoint> quantile_table(const LengthTally& lengths, int points = 1000);
[[nodiscard]] std::vector<QuantilePoint> quantile_table(const LengthDistribution& lengths, int points = 1000);

}  // namespace hdpsim
