#include "sim/cost/impl/fitted.h"

#include <algorithm>

#include "sim/cost/fitted_transfer.h"

namespace hdpsim {
namespace {

bool same_launch(const PackedSample& sample, const std::vector<AttentionBlock>& blocks) {
  return std::equal(sample.documents.begin(), sample.documents.end(), blocks.begin(), blocks.end(),
                    [](const PackedDocument& document, const AttentionBlock& block) {
                      return document.queries == block.queries && document.keys == block.keys && block.count == 1;
                    });
}

bool same_launch(const AttentionSample& sample, const AttentionBlock& block) {
  return sample.queries == block.queries && sample.keys == block.keys && sample.count == block.count;
}

std::optional<Duration> sample_in(const AttentionCurve& curve, const std::vector<AttentionBlock>& blocks) {
  if (blocks.size() == 1) {
    const auto found = std::find_if(curve.samples.begin(), curve.samples.end(),
                                    [&](const AttentionSample& s) { return same_launch(s, blocks.front()); });
    return found == curve.samples.end() ? std::nullopt : std::optional(found->time);
  }
  const auto found = std::find_if(curve.packed.begin(), curve.packed.end(),
                                  [&](const PackedSample& s) { return same_launch(s, blocks); });
  return found == curve.packed.end() ? std::nullopt : std::optional(found->time);
}

}  // namespace

FittedCostModel::FittedCostModel(const DeviceProfile& profile)
    : tables_(profile), curves_(profile.attention), memory_bound_(profile.fits.memory_bound) {
  for (const AttentionFit& fit : profile.fits.attention) {
    attention_.emplace_back(fit, profile.datasheet.multiprocessors);
  }
  if (profile.fits.gemm && profile.gemm) {
    gemm_.emplace(*profile.fits.gemm, *profile.gemm, profile.datasheet.multiprocessors);
  }
}

// The fit of the kernel itself, otherwise the one for all kernels.
const MemoryBoundFit* FittedCostModel::memory_bound_fit(MemoryKernel kind) const {
  const MemoryBoundFit* all = nullptr;
  for (const MemoryBoundFit& fit : memory_bound_) {
    if (fit.kernel == memory_kernel_name(kind)) return &fit;
    if (fit.kernel == every_kernel) all = &fit;
  }
  return all;
}

Estimate FittedCostModel::gemm(const Gemm& op) const {
  if (!gemm_ || is_narrow(op.format)) return tables_.gemm(op);
  const FittedGemm::Cost cost = gemm_->cost(op);
  const Evidence ground = cost.sampled   ? Evidence::measured
                          : cost.outside ? Evidence::extrapolated
                                         : Evidence::interpolated;
  return {Duration::seconds(cost.seconds), ground};
}

Estimate FittedCostModel::memory_bound(const MemoryBound& op) const {
  const MemoryBoundFit* const fit = memory_bound_fit(op.kind);
  if (fit == nullptr || op.kernels <= 0) return tables_.memory_bound(op);
  const double bytes = static_cast<double>(op.traffic.count()) / static_cast<double>(op.kernels);
  const bool inside =
      bytes >= static_cast<double>(fit->least.count()) && bytes <= static_cast<double>(fit->most.count());
  return {Duration::seconds(static_cast<double>(op.kernels) * fitted_seconds(fit->curve, bytes)),
          inside ? Evidence::interpolated : Evidence::extrapolated};
}

const FittedAttention* FittedCostModel::kernel(Mask mask, const Attention& op) const {
  const auto found = std::find_if(attention_.begin(), attention_.end(), [&](const FittedAttention& kernel) {
    const AttentionFit& fit = kernel.fit();
    return fit.causal == (mask == Mask::causal) && fit.backward == (op.direction == Direction::backward) &&
           fit.head_dim == op.head_dim;
  });
  return found == attention_.end() ? nullptr : &*found;
}

std::optional<Duration> FittedCostModel::sample(const Attention& op) const {
  const Mask mask = op.blocks.front().mask;
  const auto other_mask = [&](const AttentionBlock& block) { return block.mask != mask; };
  for (const AttentionCurve& curve : curves_) {
    const bool same_kernel = curve.causal == (mask == Mask::causal) && curve.head_dim == op.head_dim &&
                             curve.backward == (op.direction == Direction::backward) && curve.heads == op.heads &&
                             curve.kv_heads == op.kv_heads;
    if (!same_kernel || std::any_of(op.blocks.begin(), op.blocks.end(), other_mask)) continue;
    return sample_in(curve, op.blocks);
  }
  return std::nullopt;
}

Estimate FittedCostModel::attention(const Attention& op) const {
  if (op.blocks.empty()) return {Duration{}, Evidence::interpolated};
  const std::array<const FittedAttention*, 2> kernels{kernel(Mask::causal, op), kernel(Mask::full, op)};
  static_assert(static_cast<int>(Mask::causal) == 0 && static_cast<int>(Mask::full) == 1);
  const bool known = std::all_of(op.blocks.begin(), op.blocks.end(), [&](const AttentionBlock& block) {
    return kernels[static_cast<std::size_t>(block.mask)] != nullptr;
  });
  if (!known) return tables_.attention(op);
  if (const auto time = sample(op)) return {*time, Evidence::measured};
  const FittedLaunch launch = fitted_launch(kernels, op);
  return {Duration::seconds(launch.seconds),
          2 * launch.outside_area > launch.area ? Evidence::extrapolated : Evidence::interpolated};
}

}  // namespace hdpsim
