#pragma once

#include <memory>

#include "sim/cost/cost_model.h"

namespace hdpsim {

/// Products that add their result to a sum (Gemm::sum_bytes). A plain product writes an element for each number of its
/// result; these read and write the number of the sum in its place. The product takes what another model says, and a
/// share of the time in which the memory carries the further bytes at the bandwidth of its data sheet.
///
/// The share, 0.72, is what shows of them in products that SimuMax v1.2 timed (configs/system, matmul): gradients of
/// weights that are added up in fp32 (layout NT) against the two other products of the same weight. On an A100 they
/// take longer by 3.7 of 6 bytes a number (median of 61), on a B200 by 4.9 (of 144).
class SummingCostModel final : public CostModel {
 public:
  SummingCostModel(std::unique_ptr<CostModel> model, const DeviceProfile& profile)
      : model_(std::move(model)),
        bandwidth_(profile.datasheet.memory_bandwidth),
        element_bytes_(profile.element_bytes) {}
  [[nodiscard]] Estimate gemm(const Gemm& op) const override;
  [[nodiscard]] Estimate attention(const Attention& op) const override { return model_->attention(op); }
  [[nodiscard]] Estimate memory_bound(const MemoryBound& op) const override { return model_->memory_bound(op); }
  [[nodiscard]] std::int64_t kernels(const Attention& op) const override { return model_->kernels(op); }

 private:
  std::unique_ptr<CostModel> model_;
  Bandwidth bandwidth_;
  std::int64_t element_bytes_;
};

}  // namespace hdpsim
