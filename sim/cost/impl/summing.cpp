#include "sim/cost/impl/summing.h"

namespace hdpsim {
namespace {

constexpr double shown = 0.72;  // of the time of further bytes

}  // namespace

Estimate SummingCostModel::gemm(const Gemm& op) const {
  Gemm plain = op;
  plain.sum_bytes = 0;
  Estimate estimate = model_->gemm(plain);
  const std::int64_t further = 2 * op.sum_bytes - element_bytes_;
  if (op.sum_bytes > 0 && further > 0) {
    estimate.time += (Bytes(further) * op.m * op.n / bandwidth_).scaled(shown);
  }
  return estimate;
}

}  // namespace hdpsim
