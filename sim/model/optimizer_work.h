#pragma once

#include <cstdint>

#include "sim/model/operation.h"
#include "sim/model/recipe.h"

namespace hdpsim {

/// The parameters of a device at the end of a step.
struct OptimizerShare {
  std::int64_t held = 0;     ///< Those that it computes with ...
  std::int64_t updated = 0;  ///< ... and those that it updates: a shard of them, or all.
  bool averages = true;      ///< Several ranks sum gradients.
};

/// What a device reads and writes once a step for the optimizer, at the bandwidth of Adam's kernel. Adam reads the
/// gradient and, in fp32, the master weight and both moments; it writes these three and the parameter.
///
/// With Recipe::gradient_buffer, as in Megatron-Core 0.8 (distributed/param_and_grad_buffer.py, optimizer/
/// clip_grads.py, distrib_optimizer.py): the buffer of gradients is cleared (a write), its norm is looked at for NaN (a
/// read) and, where ranks average, it is scaled (a read and a write); of the reduced gradients the norm is taken (a
/// read), and master weights are read and copied to the parameters (a write in place of Adam's). Gradients are only
/// multiplied where the norm is above the limit; that is not counted.
[[nodiscard]] MemoryBound optimizer_work(const OptimizerShare& share, std::int64_t element_bytes, const Recipe& recipe);

}  // namespace hdpsim
