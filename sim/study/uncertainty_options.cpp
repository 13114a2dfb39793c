#include "sim/study/uncertainty_options.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "sim/document/key_table.h"

namespace hdpsim {
namespace {

constexpr double most_samples = 1e5;
constexpr double most_cv = 1;
constexpr double least_nudge = 0.01;
constexpr double usual_nudge = 0.05;

using Supposed = std::array<double, cost_families>;

const KeyTable<Supposed>& error_table() {
  static const auto made = [] {
    KeyTable<Supposed> errors("the errors");
    for (std::size_t family = 0; family < cost_families; ++family) {
      const std::string name(cost_family_name(static_cast<CostFamily>(family)));
      errors.number(name, {0, most_cv}, [family](auto& supposed) -> auto& { return supposed[family]; },
                    "a supposed coefficient of variation of this family of costs",
                    {.otherwise = "the profile's residuals"});
    }
    return errors;
  }();
  return made;
}

const KeyTable<UncertaintyOptions>& uncertainty_table() {
  static const auto made = [] {
    KeyTable<UncertaintyOptions> keys("the uncertainty");
    keys.count("samples", {20, most_samples}, at(&UncertaintyOptions::samples), "runs that are drawn",
               {.unit = "samples"});
    keys.count("steps", {1, 1e6}, at(&UncertaintyOptions::steps), "steps of a run on which elasticities are taken",
               {.unit = "steps"});
    keys.count("seed", {0, 9e15}, at(&UncertaintyOptions::seed), "the seed of the samples");
    keys.map("errors", error_table(), at(&UncertaintyOptions::supposed), "errors that are supposed, family by family");
    return keys;
  }();
  return made;
}

}  // namespace

const std::vector<KeyText>& uncertainty_keys() {
  return uncertainty_table().texts();
}

UncertaintyOptions read_uncertainty(const Value& value, Diagnostics& diagnostics) {
  UncertaintyOptions options;
  (void)uncertainty_table().read(value, options, diagnostics);
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
