#pragma once

#include <memory>

#include "sim/cost/cost_model.h"

namespace hdpsim {

/// Answers as another model does, times a factor for each family of kernels. The evidence stays: measured times are off
/// by the same factor as their family.
class ScaledCostModel final : public CostModel {
 public:
  ScaledCostModel(std::unique_ptr<CostModel> model, const FamilyFactors& factors)
      : model_(std::move(model)), factors_(factors) {}
  [[nodiscard]] Estimate gemm(const Gemm& op) const override { return scaled(model_->gemm(op), CostFamily::gemm); }
  [[nodiscard]] Estimate attention(const Attention& op) const override {
    const bool forward = op.direction == Direction::forward;
    return scaled(model_->attention(op), forward ? CostFamily::attention_forward : CostFamily::attention_backward);
  }
  [[nodiscard]] Estimate memory_bound(const MemoryBound& op) const override {
    return scaled(model_->memory_bound(op), CostFamily::memory_bound);
  }
  [[nodiscard]] std::int64_t kernels(const Attention& op) const override { return model_->kernels(op); }

 private:
  [[nodiscard]] Estimate scaled(const Estimate& estimate, CostFamily family) const {
    return {estimate.time.scaled(factors_[family]), estimate.evidence};
  }

  std::unique_ptr<CostModel> model_;
  FamilyFactors factors_;
};

}  // namespace hdpsim
