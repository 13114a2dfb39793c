#include "sim/trace/row_order.h"

#include <limits>
#include <numeric>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/random.h"

namespace hdpsim {

RowOrder make_random_order(std::size_t rows, std::uint64_t seed) {
  HDPSIM_CHECK(rows <= std::numeric_limits<std::uint32_t>::max(), "{} rows", rows);
  std::vector<std::uint32_t> order(rows);
  std::iota(order.begin(), order.end(), 0U);
  RandomStream random(seed, "order of documents");
  for (std::size_t left = rows; left > 1; --left) std::swap(order[left - 1], order[random.below(left)]);
  return std::make_shared<const std::vector<std::uint32_t>>(std::move(order));
}

}  // namespace hdpsim
