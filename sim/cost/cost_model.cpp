#include "sim/cost/cost_model.h"

#include <algorithm>

#include "sim/cost/impl/fitted.h"
#include "sim/cost/impl/scaled.h"
#include "sim/cost/impl/summing.h"
#include "sim/cost/impl/table.h"
#include "sim/cost/impl/unfused_attention.h"

namespace hdpsim {

std::string_view evidence_name(Evidence evidence) {
  switch (evidence) {
    case Evidence::measured:
      return "measured";
    case Evidence::interpolated:
      return "interpolated";
    case Evidence::extrapolated:
      return "extrapolated";
    case Evidence::formula:
      return "formula";
  }
  return "";
}

Estimate CostModel::linear(const LinearPart& part) const {
  Estimate sum{Duration{}, Evidence::measured};
  const auto add = [&](const Estimate& estimate) {
    sum.time += estimate.time;
    sum.evidence = std::max(sum.evidence, estimate.evidence);
  };
  for (const Gemm& product : part.gemms) add(gemm(product));
  for (const MemoryBound& kernels : part.memory_bound) add(memory_bound(kernels));
  return sum;
}

std::int64_t flash_attention_kernels(const Attention& op) {
  constexpr std::int64_t forward = 1;
  constexpr std::int64_t backward = 3;
  if (op.blocks.empty()) return 0;
  return op.direction == Direction::forward ? forward : backward;
}

std::unique_ptr<CostModel> make_cost_model(const DeviceProfile& profile) {
  std::unique_ptr<CostModel> model;
  if (profile.fits.empty()) {
    model = std::make_unique<TableCostModel>(profile);
  } else {
    model = std::make_unique<FittedCostModel>(profile);
  }
  if (profile.unfused_attention) model = std::make_unique<UnfusedAttentionCostModel>(std::move(model));
  model = std::make_unique<SummingCostModel>(std::move(model), profile);
  if (profile.factors.any()) model = std::make_unique<ScaledCostModel>(std::move(model), profile.factors);
  return model;
}

}  // namespace hdpsim
