#pragma once

#include "sim/cost/cost_model.h"

namespace hdpsim {

/// The roofline of a data sheet: work at peak speed or bytes at peak memory bandwidth, whichever takes longer, plus a
/// launch. Optimistic: no kernel is faster.
class FormulaCostModel final : public CostModel {
 public:
  FormulaCostModel(const Datasheet& datasheet, Duration launch);
  [[nodiscard]] Estimate gemm(const Gemm& op) const override;
  [[nodiscard]] Estimate attention(const Attention& op) const override;
  [[nodiscard]] Estimate memory_bound(const MemoryBound& op) const override;
  [[nodiscard]] std::int64_t kernels(const Attention& op) const override { return flash_attention_kernels(op); }

 private:
  [[nodiscard]] Estimate roofline(double flops, double bytes) const;

  double peak_;              // FLOP/s
  double memory_bandwidth_;  // B/s
  Duration launch_;
};

/// The least bytes that a product reads and writes: m k + k n elements of its type, and m n of bf16.
[[nodiscard]] double gemm_bytes(const Gemm& op);

}  // namespace hdpsim
