#include "sim/cost/cost_model.h"

#include "sim/cost/impl/fitted.h"
#include "sim/cost/impl/scaled.h"
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

std::unique_ptr<CostModel> make_cost_model(const DeviceProfile& profile) {
  std::unique_ptr<CostModel> model;
  if (profile.fits.empty()) {
    model = std::make_unique<TableCostModel>(profile);
  } else {
    model = std::make_unique<FittedCostModel>(profile);
  }
  if (profile.unfused_attention) model = std::make_unique<UnfusedAttentionCostModel>(std::move(model));
  if (profile.factors.any()) model = std::make_unique<ScaledCostModel>(std::move(model), profile.factors);
  return model;
}

}  // namespace hdpsim
