#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hdpsim {

/// Waves of micro-batches over the pool: within a wave every rank runs at most one, and consecutive ranks are filled
/// from rank 0 on. A micro-batch goes to the earliest wave that has room for it (first fit), whatever the load of the
/// ranks.
class Waves {
 public:
  struct Place {
    std::size_t wave;
    std::int64_t first_rank;
  };
  /// Waves for at most `micro_batches` micro-batches on a pool of `ranks`.
  Waves(std::size_t micro_batches, std::int64_t ranks);
  /// Takes `degree` consecutive ranks, 1 to all. O(log micro-batches).
  [[nodiscard]] Place place(std::int64_t degree);

 private:
  std::int64_t ranks_;
  std::size_t leaves_ = 1;
  std::vector<std::int64_t>
      free_;  // a tournament tree: node i holds the maximum of 2i and 2i + 1, the leaves are the waves
};

}  // namespace hdpsim
