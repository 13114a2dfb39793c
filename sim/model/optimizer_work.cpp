#include "sim/model/optimizer_work.h"

#include <algorithm>

namespace hdpsim {
namespace {

constexpr std::int64_t fp32 = 4;

// Bytes of an updated parameter, besides those of gradient_bytes and of the parameter itself.
std::int64_t state_traffic(const Recipe& recipe, std::int64_t element_bytes) {
  constexpr std::int64_t adam = 6;  // reads and writes of the master weight and of two moments
  if (recipe.optimizer == Optimizer::adam) return adam * fp32;
  if (recipe.optimizer == Optimizer::lamb) return (adam + 5) * fp32;
  return 4 * fp32 + 3 * element_bytes;  // master weight, one moment; the copy written, looked at, and the update read
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
    of_updated += recipe.gradient_bytes + fp32;  // norm, and the master weight that is copied
    of_held = (clear_and_check + scale) * recipe.gradient_bytes;
    work.elementwise.kernels += share.averages ? 5 : 4;
  }
  work.elementwise.traffic = Bytes(share.updated * of_updated + share.held * of_held);
  if (recipe.optimizer != Optimizer::muon) return work;
  for (const DealtMatrices& dealt : share.matrices) work.orthogonal.push_back(orthogonalization(dealt));
  return work;
}

std::int64_t optimizer_numbers(Optimizer optimizer, bool of_matrix) {
  return optimizer == Optimizer::muon && of_matrix ? 2 : 3;
}

}  // namespace hdpsim
