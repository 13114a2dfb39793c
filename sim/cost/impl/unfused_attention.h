#pragma once

#include <memory>

#include "sim/cost/cost_model.h"

namespace hdpsim {

/// Attention as frameworks computed it before FlashAttention: the whole square of scores is written to memory, also
/// above the diagonal of a causal mask. Forward: scores = Q K^T, one kernel for scale, mask and softmax, one for
/// dropout if there is any, output = P V. Backward: the gradients of V, P, Q and K, and the kernels of dropout and
/// softmax between them. The other model answers for everything else.
///
/// Traffic of the kernels between the products, in bytes per score (fp16 values; the mask of dropout is one byte, as
/// Korthikanti et al. 2022, section 4.1, count it): softmax reads 2 and writes 2, dropout reads 2 and writes 2 + 1;
/// backward dropout reads 2 + 1 and writes 2, softmax reads 2 (its output) + 2 and writes 2.
class UnfusedAttentionCostModel final : public CostModel {
 public:
  explicit UnfusedAttentionCostModel(std::unique_ptr<CostModel> model) : model_(std::move(model)) {}
  [[nodiscard]] Estimate gemm(const Gemm& op) const override { return model_->gemm(op); }
  [[nodiscard]] Estimate attention(const Attention& op) const override;
  [[nodiscard]] Estimate memory_bound(const MemoryBound& op) const override { return model_->memory_bound(op); }
  /// The number of products and of kernels between them, for each kind of block.
  [[nodiscard]] std::int64_t kernels(const Attention& op) const override;

 private:
  std::unique_ptr<CostModel> model_;
};

}  // namespace hdpsim
