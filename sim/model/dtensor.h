#pragma once

#include <cstdint>

#include "sim/model/loss_form.h"
#include "sim/model/recipe.h"

// What tensor parallelism by PyTorch's DTensor has of its own, under layers of PyTorch (Recipe::is_pytorch).

namespace hdpsim {

/// An all-gather leaves the parts of all devices one behind the other and a reduce-scatter takes them so, where tensors
/// of a batch have them side by side along the sequence: a kernel copies all of it, behind the one and before the other
/// (torch/distributed/_functional_collectives.py: all_gather_tensor and reduce_scatter_tensor of a dimension other than
/// 0). What overlaps with its product in chunks (async TP) is not copied.
[[nodiscard]] inline bool copies_slices(const Recipe& recipe) {
  return recipe.is_pytorch() && recipe.sequence_parallel;
}

/// A sum that async TP hides behind its product is one of partial results that devices have sent each other: a kernel
/// adds them up (torch/distributed/_symmetric_memory/__init__.py, _fused_matmul_reduce_scatter_impl). It hides no sum
/// of several products' outputs, as the gradient of what the projections of queries, keys and values read, or those of
/// a gated MLP (torch/_inductor/fx_passes/micro_pipeline_tp.py, fuse_matmul_reduce_scatter: the sum's input must be a
/// product).
[[nodiscard]] inline bool hides_sum_of(std::int64_t products, const Recipe& recipe) {
  return products == 1 || !recipe.is_pytorch();
}

/// F.cross_entropy(logits.float()) of logits whose words are cut over devices, kernel by kernel (torch/distributed/
/// tensor/parallel/loss.py). Forward: cast, maximum, difference, exponential, sum, difference. Backward: a dense
/// gradient of the picked words, the exponential of the kept result, their sum, its product with the loss's gradient,
/// and a cast; the first three and the result exist at once.
inline constexpr LossForm parallel_loss_form{Loss::pytorch, "pytorch", {1, 9, 6}, {1, 9, 6}, {0, 4}};

/// How a device of `tp` computes its part of the loss.
[[nodiscard]] inline const LossForm& loss_form(const Recipe& recipe, std::int64_t tp) {
  const bool is_parallel = tp > 1 && recipe.is_pytorch() && recipe.loss == Loss::pytorch;
  return is_parallel ? parallel_loss_form : form_of(recipe.loss);
}

}  // namespace hdpsim
