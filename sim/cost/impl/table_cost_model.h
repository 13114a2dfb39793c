#pragma once

#include <array>
#include <optional>
#include <vector>

#include "sim/cost/impl/formula.h"
#include "sim/cost/impl/sampled_kernels.h"

namespace hdpsim {

/// Interpolates a profile's samples; operations without samples fall back to the roofline of the data sheet.
///
/// Attention: c0 + max(sum of all rows, longest row x multiprocessors), each at the speed of its block's length; the
/// second is the time of an under-filled device. A mask, direction or head dimension without samples of its own takes
/// the nearest ones, per FLOP, and counts as extrapolated. The evidence is that of the larger part of a launch's time.
/// `measured` is only what a measured profile holds itself; published figures are never more than interpolated, also
/// where a measured profile took a part of them over, which then names its source.
class TableCostModel final : public CostModel {
 public:
  explicit TableCostModel(const DeviceProfile& profile);
  [[nodiscard]] Estimate gemm(const Gemm& op) const override;
  [[nodiscard]] Estimate attention(const Attention& op) const override;
  [[nodiscard]] Estimate memory_bound(const MemoryBound& op) const override;
  [[nodiscard]] std::int64_t kernels(const Attention& op) const override { return flash_attention_kernels(op); }

 private:
  /// The kernel that is used for a mask, direction and head dimension.
  struct Match {
    const AttentionKernel* kernel = nullptr;
    double scale = 1;  ///< FLOPs per pair, relative to the kernel's own.
    bool exact = false;
  };
  /// By mask. O(kernels).
  [[nodiscard]] std::array<Match, 2> matches(const Attention& op) const;
  [[nodiscard]] Estimate tabulated(const Attention& op) const;

  bool measured_;
  bool measured_gemm_;
  FormulaCostModel formula_;
  std::vector<AttentionKernel> attention_;
  std::optional<GemmKernel> gemm_;
  std::array<std::optional<GemmKernel>, narrow_tables.size()> gemm_narrow_;
  std::optional<MemoryBoundRate> memory_bound_;
};

}  // namespace hdpsim
