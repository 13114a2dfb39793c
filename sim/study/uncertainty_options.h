#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/document/key.h"
#include "sim/profile/cost_family.h"

namespace hdpsim {

/// `uncertainty` of a study: how the intervals of its figures are found.
struct UncertaintyOptions {
  std::int64_t samples = 200;
  std::int64_t steps = 4;  ///< Of a run, on which elasticities are taken.
  std::uint64_t seed = 1;
  std::array<double, cost_families> supposed{};  ///< Coefficients of variation; 0: the profile's residuals.
};

/// The keys of `uncertainty`.
[[nodiscard]] const std::vector<KeyText>& uncertainty_keys();

/// Reads `{samples: 200, steps: 4, seed: 1, errors: {attention_forward: 0.1}}`, each key of which may be left out;
/// `errors` supposes a coefficient of variation for a family instead of what the profile's residuals say. All problems
/// are reported.
[[nodiscard]] UncertaintyOptions read_uncertainty(const Value& value, Diagnostics& diagnostics);

/// The errors of all families: those supposed, otherwise the profile's.
[[nodiscard]] FamilyErrors errors_of(const UncertaintyOptions& options, const DeviceProfile& profile,
                                     std::int64_t head_dim);

/// How far a family is moved to see what that does to a step: one standard deviation of its error, at least 1 %; 5 %
/// where it is not known.
[[nodiscard]] double nudge(const FamilyError& error);

/// Whether elasticities are taken on a step of a run: on so many, spread evenly over it.
[[nodiscard]] bool takes_elasticities(const UncertaintyOptions& options, std::int64_t step, std::int64_t steps);

}  // namespace hdpsim
