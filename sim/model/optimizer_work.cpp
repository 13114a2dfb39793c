#include "sim/model/optimizer_work.h"

#include <algorithm>
#include <cmath>

#include "sim/model/shares.h"

namespace hdpsim {
namespace {

// Bytes of an element of parameters as the optimizer writes them.
std::int64_t written_bytes(const Recipe& recipe, std::int64_t element_bytes) {
  if (recipe.parameters == NumberType::bf16) return element_bytes;
  return bytes_of(recipe.parameters, 1);
}

// Bytes that so many updates read and write, besides the gradients. LAMB passes over fp32 five times more; Muon has one
// moment, its copy is written and looked at, and the update read.
Bytes state_traffic(const Recipe& recipe, std::int64_t updates, std::int64_t element_bytes) {
  const std::int64_t moments = recipe.optimizer == Optimizer::muon ? 1 : 2;
  const std::int64_t written = written_bytes(recipe, element_bytes);
  Bytes traffic(2 * moments * bytes_of(recipe.moments, updates));
  traffic +=
      Bytes(recipe.has_master() ? 2 * bytes_of(recipe.master, updates) + updates * written : 2 * updates * written);
  if (recipe.optimizer == Optimizer::lamb) traffic += Bytes(updates * 5 * fp32_bytes);
  if (recipe.optimizer == Optimizer::muon) traffic += Bytes(updates * 3 * element_bytes);
  return traffic;
}

HostUpdate host_update(const Recipe& recipe, std::int64_t updated, std::int64_t element_bytes) {
  const HostStates& host = recipe.host;
  HostUpdate update{.parameters = std::llround(host.optimizer * static_cast<double>(updated)),
                    .per_s = host.updates_per_s / static_cast<double>(host.devices),
                    .overlaps = host.overlaps};
  if (!recipe.reduces_in_pass()) update.from_device = Bytes(update.parameters * recipe.gradient_bytes);
  if (!host.parameters) update.to_device = Bytes(update.parameters * written_bytes(recipe, element_bytes));
  return update;
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
  if (recipe.host.optimizer > 0) work.host = host_update(recipe, share.updated, element_bytes);
  const std::int64_t updated = share.updated - work.host.parameters;
  const std::int64_t gradient = recipe.autocast() ? fp32_bytes : recipe.gradient_bytes;
  Bytes& traffic = work.elementwise.traffic;
  traffic = Bytes(updated * gradient) + state_traffic(recipe, updated, element_bytes);
  if (recipe.has_gradient_buffer()) {
    const std::int64_t clear_and_check = 2;
    const std::int64_t scale = share.averages ? 2 : 0;
    // Norm, and the master weight that is copied.
    traffic += Bytes(share.updated * gradient) + Bytes(recipe.has_master() ? bytes_of(recipe.master, updated) : 0);
    traffic += Bytes(share.held * (clear_and_check + scale) * recipe.gradient_bytes);
    work.elementwise.kernels += share.averages ? 5 : 4;
  }
  if (recipe.optimizer != Optimizer::muon) return work;
  for (const DealtMatrices& dealt : share.matrices) work.orthogonal.push_back(orthogonalization(dealt));
  return work;
}

Bytes optimizer_bytes(const Recipe& recipe, std::int64_t parameters, double of_matrices) {
  const Bytes moment(bytes_of(recipe.moments, parameters));
  const Bytes master(recipe.has_master() ? bytes_of(recipe.master, parameters) : 0);
  const Bytes all = master + moment * 2;
  return recipe.optimizer == Optimizer::muon ? all - moment.scaled(std::min(1.0, of_matrices)) : all;
}

}  // namespace hdpsim
