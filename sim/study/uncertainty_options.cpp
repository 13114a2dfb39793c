#include "sim/study/uncertainty_options.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "sim/document/reader.h"

namespace hdpsim {
namespace {

constexpr double most_samples = 1e5;
constexpr double most_cv = 1;
constexpr double least_nudge = 0.01;
constexpr double usual_nudge = 0.05;

}  // namespace

UncertaintyOptions read_uncertainty(const Value& value, Diagnostics& diagnostics) {
  MapReader map(value, "the uncertainty", diagnostics);
  UncertaintyOptions options;
  options.samples = map.optional_in<std::int64_t>("samples", {20, most_samples}).value_or(options.samples);
  options.steps = map.optional_in<std::int64_t>("steps", {1, 1e6}).value_or(options.steps);
  options.seed = static_cast<std::uint64_t>(map.optional_in<std::int64_t>("seed", {0, 9e15}).value_or(1));
  if (const Value* errors = map.find("errors")) {
    MapReader families(*errors, "the errors", diagnostics);
    for (std::size_t family = 0; family < cost_families; ++family) {
      const std::string name(cost_family_name(static_cast<CostFamily>(family)));
      options.supposed[family] = families.optional_in<double>(name, {0, most_cv}).value_or(0);
    }
    families.finish();
  }
  map.finish();
  return options;
}

FamilyErrors errors_of(const UncertaintyOptions& options, const DeviceProfile& profile, std::int64_t head_dim) {
  FamilyErrors errors = residual_errors(profile, head_dim);
  for (std::size_t family = 0; family < cost_families; ++family) {
    if (options.supposed[family] > 0) errors[family] = {{}, options.supposed[family]};
  }
  return errors;
}

double nudge(const FamilyError& error) {
  return error.known() ? std::max(least_nudge, error.deviation()) : usual_nudge;
}

bool takes_elasticities(const UncertaintyOptions& options, std::int64_t step, std::int64_t steps) {
  const std::int64_t count = std::min(options.steps, steps);
  return step == 0 || step * count / steps != (step - 1) * count / steps;
}

}  // namespace hdpsim
