#pragma once

#include <optional>
#include <vector>

#include "sim/cost/fitted_attention.h"
#include "sim/cost/fitted_gemm.h"
#include "sim/cost/impl/table_cost_model.h"

namespace hdpsim {

/// Uses the fits of a measured profile; operations without a fit are left to the tables.
///
/// Evidence: measured is a sample of exactly this operation, whose time is returned. Interpolated lies within the range
/// of the fit's samples, extrapolated beyond it. A launch of attention has the evidence of the larger part of its area.
class FittedCostModel final : public CostModel {
 public:
  explicit FittedCostModel(const DeviceProfile& profile);
  [[nodiscard]] Estimate gemm(const Gemm& op) const override;
  [[nodiscard]] Estimate attention(const Attention& op) const override;
  [[nodiscard]] Estimate memory_bound(const MemoryBound& op) const override;
  [[nodiscard]] std::int64_t kernels(const Attention& op) const override { return flash_attention_kernels(op); }

 private:
  [[nodiscard]] const FittedAttention* kernel(Mask mask, const Attention& op) const;
  [[nodiscard]] std::optional<Duration> sample(const Attention& op) const;

  TableCostModel tables_;
  std::vector<AttentionCurve> curves_;
  std::vector<FittedAttention> attention_;
  std::optional<FittedGemm> gemm_;
  [[nodiscard]] const MemoryBoundFit* memory_bound_fit(MemoryKernel kind) const;
  std::vector<MemoryBoundFit> memory_bound_;
};

}  // namespace hdpsim
