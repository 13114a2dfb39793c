#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/cost/impl/sampled_kernels.h"
#include "sim/model/operation.h"
#include "sim/profile/profile_fits.h"

namespace hdpsim {

/// One attention kernel by its fit: the sum of terms that AttentionFit states. Calibration builds its equations from
/// this very code, term by term, so that a fit and its use cannot drift apart.
///
/// Areas alone decide whether the longest row of tiles or the sum of all areas counts, so that a time is linear in the
/// coefficients.
class FittedAttention {
 public:
  FittedAttention(const AttentionFit& fit, std::int64_t multiprocessors);

  /// The contribution of one block to a launch; areas and rows over all its heads.
  struct BlockCost {
    double area = 0;           ///< (query, key) pairs, with whole tiles.
    double seconds = 0;        ///< Time of these pairs on a full device.
    double longest_row = 0;    ///< Pairs of the longest row of tiles x multiprocessors.
    double row_seconds = 0;    ///< Time of that row's pairs.
    double other_seconds = 0;  ///< Terms by row, row of tiles and document.
    double tile_rows = 0;
    bool outside = false;  ///< A side is shorter or longer than the measured ones.
  };
  [[nodiscard]] BlockCost cost(const AttentionBlock& block, std::int64_t heads, std::int64_t kv_heads) const;

  [[nodiscard]] const AttentionFit& fit() const { return fit_; }
  [[nodiscard]] std::int64_t multiprocessors() const { return multiprocessors_; }

 private:
  /// Pairs of one head, with whole tiles.
  [[nodiscard]] double area(const AttentionBlock& block) const;
  [[nodiscard]] double pair_seconds(std::int64_t length) const;

  AttentionFit fit_;
  std::int64_t multiprocessors_;
  LogCurve pairs_;                       // seconds by length
  std::vector<double> seconds_by_tile_;  // pairs_ at the first multiples of a tile's side
  std::int64_t step_;                    // that side: every length is a multiple of it
};

/// The time of a launch, and how much of it lies in blocks beyond the measured sizes.
struct FittedLaunch {
  double seconds = 0;
  double outside_area = 0;
  double area = 0;
};

/// The time of a launch of blocks under both masks; `kernels[mask]` may be null if the launch has no block with that
/// mask.
[[nodiscard]] FittedLaunch fitted_launch(const std::array<const FittedAttention*, 2>& kernels, const Attention& op);

}  // namespace hdpsim
