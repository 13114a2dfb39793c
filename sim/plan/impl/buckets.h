#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "sim/plan/impl/ring_sizing.h"

namespace hdpsim {

/// A sequence of at least C tokens, the size of its ring, and its cost.
struct Ring {
  std::size_t sequence = 0;
  RingSize size;
  double seconds = 0;  ///< Seconds on every rank of the ring.
};

/// ByteScale, Algorithm 2 with DP-Balance: sequences, longest first, in buckets of equal work, drawn from the first
/// non-empty bucket. A sequence with more work than a bucket holds has a bucket alone.
class Buckets {
 public:
  /// `rings` has the longest sequence first and must outlive the buckets.
  Buckets(const std::vector<Ring>& rings, std::int64_t count);

  [[nodiscard]] bool empty() const { return left_.empty(); }
  /// Takes the longest sequence of the first bucket whose ring fits on `targets` ranks; if none fits, the longest.
  /// O(log n).
  const Ring& draw(std::int64_t targets);

 private:
  const std::vector<Ring>& rings_;
  std::vector<std::size_t> bucket_end_;  // for every ring, the end of its bucket
  std::set<std::size_t> left_;
};

}  // namespace hdpsim
