#include "sim/model/optimizer_work.h"

#include <algorithm>

#include "sim/model/shares.h"

namespace hdpsim {
namespace {

// Bytes of an updated parameter, besides those of gradient_bytes and of the parameter itself.
std::int64_t state_traffic(const Recipe& recipe, std::int64_t element_bytes) {
  const std::int64_t adam = 2 * (fp32_bytes + 2 * recipe.moment_bytes);  // reads and writes
  if (recipe.optimizer == Optimizer::adam) return adam;
  if (recipe.optimizer == Optimizer::lamb) return adam + 5 * fp32_bytes;
  // The copy is written and looked at, and the update read.
  return 2 * (fp32_bytes + recipe.moment_bytes) + 3 * element_bytes;
}

std::int64_t kernels_of(Optimizer optimizer) {
  return optimizer == Optimizer::lamb ? 4 : 1;
}

Orthogonalization orthogonalization(const DealtMatrices& dealt) {
  constexpr int iterations = 5;
  const auto [m, n] = std::minmax(dealt.matrix.rows, dealt.matrix.columns);
  Orthogonalization work{{}, dealt.matrix.count, dealt.ranks};
  for (int i = 0; i < iterations; ++i) {
    work.products.push_back({m, m, n});
    work.products.push_back({m, m, m});
    work.products.push_back({m, n, m});
  }
  return work;
}

}  // namespace

OptimizerWork optimizer_work(const OptimizerShare& share, std::int64_t element_bytes, const Recipe& recipe) {
  OptimizerWork work{{Bytes{}, kernels_of(recipe.optimizer), MemoryKernel::adam}};
  std::int64_t of_updated = recipe.gradient_bytes + state_traffic(recipe, element_bytes) + element_bytes;
  std::int64_t of_held = 0;
  if (recipe.has_gradient_buffer()) {
    const std::int64_t clear_and_check = 2;
    const std::int64_t scale = share.averages ? 2 : 0;
    of_updated += recipe.gradient_bytes + fp32_bytes;  // norm, and the master weight that is copied
    of_held = (clear_and_check + scale) * recipe.gradient_bytes;
    work.elementwise.kernels += share.averages ? 5 : 4;
  }
  work.elementwise.traffic = Bytes(share.updated * of_updated + share.held * of_held);
  if (recipe.optimizer != Optimizer::muon) return work;
  for (const DealtMatrices& dealt : share.matrices) work.orthogonal.push_back(orthogonalization(dealt));
  return work;
}

std::int64_t optimizer_bytes(const Recipe& recipe, bool of_matrix) {
  const std::int64_t moments = recipe.optimizer == Optimizer::muon && of_matrix ? 1 : 2;
  return (recipe.autocast() ? 0 : fp32_bytes) + moments * recipe.moment_bytes;
}

}  // namespace hdpsim
