#include "sim/cost/impl/table_cost_model.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace hdpsim {

TableCostModel::TableCostModel(const DeviceProfile& profile)
    : measured_(profile.provenance.label == ProfileLabel::measured),
      measured_gemm_(measured_ && profile.gemm && profile.gemm->source.empty()),
      formula_(profile.datasheet, profile.overheads.kernel_launch.time),
      memory_bound_(profile.memory_bound) {
  for (const AttentionCurve& curve : profile.attention) {
    if (!curve.samples.empty()) attention_.emplace_back(curve, profile.datasheet.multiprocessors);
  }
  const Bandwidth memory = profile.memory_bound ? profile.memory_bound->bandwidth : profile.datasheet.memory_bandwidth;
  if (profile.gemm) gemm_.emplace(*profile.gemm, profile.datasheet, memory);
  for (std::size_t i = 0; i < narrow_tables.size(); ++i) {
    if (profile.gemm_narrow[i]) gemm_narrow_[i].emplace(*profile.gemm_narrow[i], profile.datasheet, memory);
  }
}

Estimate TableCostModel::gemm(const Gemm& op) const {
  const std::optional<GemmKernel>& kernel = is_narrow(op.format) ? gemm_narrow_[narrow_format(op.format).table] : gemm_;
  if (!kernel) return formula_.gemm(op);
  const GemmKernel::Cost cost = kernel->cost(op);
  const bool measured = cost.sampled && measured_gemm_ && !is_narrow(op.format);
  const Evidence ground = cost.extrapolated ? Evidence::extrapolated
                          : measured        ? Evidence::measured
                                            : Evidence::interpolated;
  return {Duration::seconds(cost.seconds), ground};
}

Estimate TableCostModel::memory_bound(const MemoryBound& op) const {
  if (!memory_bound_) return formula_.memory_bound(op);
  const auto& own = memory_bound_->kernels;
  const auto known = std::find_if(own.begin(), own.end(), [&](const auto& each) { return each.kernel == op.kind; });
  const Duration transfer = op.traffic / (known == own.end() ? memory_bound_->bandwidth : known->bandwidth);
  return {op.kernels * memory_bound_->latency + transfer, Evidence::interpolated};
}

Estimate TableCostModel::attention(const Attention& op) const {
  return attention_.empty() ? formula_.attention(op) : tabulated(op);
}

std::array<TableCostModel::Match, 2> TableCostModel::matches(const Attention& op) const {
  // A wrong direction is worse than a wrong head dimension, and that is worse than a wrong mask: masks differ least
  // after tile rounding. Among several curves of one kernel the one with the nearest number of heads shows best how
  // full the device is.
  const bool backward = op.direction == Direction::backward;
  const auto apart = [](std::int64_t a, std::int64_t b) {
    return a == b ? 0.0 : std::abs(std::log2(static_cast<double>(a) / static_cast<double>(b)));
  };
  struct Nearest {
    const AttentionKernel* kernel = nullptr;
    std::array<double, 4> distance{};
  };
  std::array<Nearest, 2> nearest;
  for (const AttentionKernel& kernel : attention_) {
    std::array<double, 4> distance{kernel.backward() == backward ? 0.0 : 1.0,
                                   apart(op.dim_of_kernel(), kernel.head_dim()), 0, apart(op.heads, kernel.heads())};
    for (const Mask mask : {Mask::causal, Mask::full}) {
      Nearest& best = nearest[static_cast<std::size_t>(mask)];
      distance[2] = kernel.causal() == (mask == Mask::causal) ? 0.0 : 1.0;
      if (best.kernel == nullptr || distance < best.distance) best = {&kernel, distance};
    }
  }
  const auto match = [&](Mask mask) {
    const AttentionKernel& kernel = *nearest[static_cast<std::size_t>(mask)].kernel;
    double scale = static_cast<double>(op.head_dim) / static_cast<double>(kernel.head_dim());
    if (kernel.backward() != backward) scale *= backward ? backward_attention : 1 / backward_attention;
    const bool exact = kernel.causal() == (mask == Mask::causal) && kernel.backward() == backward &&
                       kernel.head_dim() == op.dim_of_kernel();
    return Match{&kernel, scale, exact};
  };
  static_assert(static_cast<int>(Mask::causal) == 0 && static_cast<int>(Mask::full) == 1);
  return {match(Mask::causal), match(Mask::full)};
}

Estimate TableCostModel::tabulated(const Attention& op) const {
  if (op.blocks.empty()) return {Duration{}, Evidence::interpolated};
  const std::array<Match, 2> matches = this->matches(op);
  if (op.blocks.size() == 1) {
    const Match& only = matches.at(static_cast<std::size_t>(op.blocks.front().mask));
    const AttentionSample* sample = only.exact ? only.kernel->sample(op.blocks.front(), op.heads) : nullptr;
    const bool measured = measured_ && !only.kernel->is_of_others();
    if (sample != nullptr) return {sample->time, measured ? Evidence::measured : Evidence::interpolated};
  }
  double all_rows = 0;
  double longest_row = 0;
  double extrapolated = 0;
  double launch = 0;
  for (const AttentionBlock& block : op.blocks) {
    const Match& match = matches[static_cast<std::size_t>(block.mask)];
    const AttentionKernel::BlockCost cost = match.kernel->cost(block, op.heads, op.kv_heads);
    const double seconds = match.scale * cost.all_rows;
    all_rows += seconds;
    longest_row = std::max(longest_row, match.scale * cost.longest_row);
    if (cost.extrapolated || !match.exact) extrapolated += seconds;
    launch = std::max(launch, match.kernel->launch_seconds());
  }
  if (all_rows == 0) return {Duration{}, Evidence::interpolated};
  const Evidence ground = 2 * extrapolated > all_rows ? Evidence::extrapolated : Evidence::interpolated;
  return {Duration::seconds(launch + std::max(all_rows, longest_row)), ground};
}

}  // namespace hdpsim
