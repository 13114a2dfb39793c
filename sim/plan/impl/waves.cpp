#include "sim/plan/impl/waves.h"

#include <algorithm>

#include "sim/base/check.h"

namespace hdpsim {

Waves::Waves(std::size_t micro_batches, std::int64_t ranks) : ranks_(ranks) {
  while (leaves_ < micro_batches) leaves_ *= 2;
  free_.assign(2 * leaves_, ranks);
}

Waves::Place Waves::place(std::int64_t degree) {
  HDPSIM_CHECK(degree >= 1 && degree <= free_[1], "{} ranks of a pool of {}", degree, ranks_);
  std::size_t node = 1;
  while (node < leaves_) node = free_[2 * node] >= degree ? 2 * node : 2 * node + 1;
  const Place place{node - leaves_, ranks_ - free_[node]};
  free_[node] -= degree;
  while (node > 1) {
    node /= 2;
    free_[node] = std::max(free_[2 * node], free_[2 * node + 1]);
  }
  return place;
}

}  // namespace hdpsim
