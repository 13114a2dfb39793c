#include "sim/cost/impl/formula.h"

#include <algorithm>

namespace hdpsim {
namespace {
constexpr double bf16 = 2;
}  // namespace

FormulaCostModel::FormulaCostModel(const Datasheet& datasheet, Duration launch)
    : peak_(datasheet.peak.per_second()),
      memory_bandwidth_(static_cast<double>(datasheet.memory_bandwidth.bytes_per_second())),
      launch_(launch) {}

Estimate FormulaCostModel::roofline(double flops, double bytes) const {
  const double seconds = std::max(flops / peak_, bytes / memory_bandwidth_);
  return {launch_ + Duration::seconds(seconds), Evidence::formula};
}

Estimate FormulaCostModel::gemm(const Gemm& op) const {
  return roofline(flops_of(op).count(), gemm_bytes(op));
}

Estimate FormulaCostModel::attention(const Attention& op) const {
  if (op.blocks.empty()) return {Duration{}, Evidence::formula};
  double query_rows = 0;
  double key_rows = 0;
  for (const AttentionBlock& block : op.blocks) {
    const auto count = static_cast<double>(block.count);
    query_rows += count * static_cast<double>(block.queries);
    key_rows += count * static_cast<double>(block.keys);
  }
  // Forward reads Q, K, V and writes O; backward reads Q, O, dO, K, V and writes dQ, dK, dV: twice as much.
  const double forward_bytes =
      bf16 * 2 * static_cast<double>(op.head_dim) *
      (query_rows * static_cast<double>(op.heads) + key_rows * static_cast<double>(op.kv_heads));
  const bool forward = op.direction == Direction::forward;
  return roofline(flops_of(op).count(), forward ? forward_bytes : 2 * forward_bytes);
}

Estimate FormulaCostModel::memory_bound(const MemoryBound& op) const {
  const double seconds = static_cast<double>(op.traffic.count()) / memory_bandwidth_;
  return {op.kernels * launch_ + Duration::seconds(seconds), Evidence::formula};
}

double gemm_bytes(const Gemm& op) {
  const auto m = static_cast<double>(op.m);
  const auto n = static_cast<double>(op.n);
  const auto row = static_cast<double>(row_bytes(op.format, op.k, static_cast<std::int64_t>(bf16)));
  return static_cast<double>(op.count) * (row * (m + n) + bf16 * m * n);
}

}  // namespace hdpsim
