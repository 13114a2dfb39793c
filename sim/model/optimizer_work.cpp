#include "sim/model/optimizer_work.h"

namespace hdpsim {

MemoryBound optimizer_work(const OptimizerShare& share, std::int64_t element_bytes, const Recipe& recipe) {
  constexpr std::int64_t fp32 = 4;
  constexpr std::int64_t adam_reads = 3;
  constexpr std::int64_t adam_writes = 3;
  std::int64_t of_updated = recipe.gradient_bytes + (adam_reads + adam_writes) * fp32 + element_bytes;
  if (!recipe.has_gradient_buffer()) return {Bytes(share.updated * of_updated), 1, MemoryKernel::adam};
  const std::int64_t clear_and_check = 2;
  const std::int64_t scale = share.averages ? 2 : 0;
  of_updated += recipe.gradient_bytes + fp32;  // norm, and the master weight that is copied
  const std::int64_t of_held = (clear_and_check + scale) * recipe.gradient_bytes;
  const std::int64_t kernels = share.averages ? 6 : 5;
  return {Bytes(share.updated * of_updated + share.held * of_held), kernels, MemoryKernel::adam};
}

}  // namespace hdpsim
