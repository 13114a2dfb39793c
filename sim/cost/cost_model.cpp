#include "sim/cost/cost_model.h"

#include "sim/cost/impl/fitted.h"
#include "sim/cost/impl/table.h"

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
  if (profile.fits.empty()) return std::make_unique<TableCostModel>(profile);
  return std::make_unique<FittedCostModel>(profile);
}

}  // namespace hdpsim
