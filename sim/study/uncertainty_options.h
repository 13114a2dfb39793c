#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/analysis/uncertainty.h"
#include "sim/cluster/cluster.h"
#include "sim/cluster/node_list.h"
#include "sim/document/key.h"
#include "sim/profile/cost_family.h"
#include "sim/profile/open_parameters.h"

namespace hdpsim {

/// `uncertainty` of a study: how the intervals of its figures are computed.
struct UncertaintyOptions {
  std::int64_t samples = 200;
  std::int64_t steps = 4;  ///< Steps of a run on which elasticities are computed.
  std::uint64_t seed = 1;
  std::array<double, cost_families> supposed{};  ///< Assumed coefficients of variation; 0: the profile's residuals.
  SlowNodes slow_nodes;
};

/// The keys of `uncertainty`.
[[nodiscard]] const std::vector<KeyText>& uncertainty_keys();

/// Reads `{samples: 200, steps: 4, seed: 1, errors: {attention_forward: 0.1}, slow_nodes: {share: 0.005,
/// slowdown: 1.1}}`, all keys optional; `errors` assumes a coefficient of variation for a family instead of the
/// profile's residuals. All problems are reported.
[[nodiscard]] UncertaintyOptions read_uncertainty(const Value& value, Diagnostics& diagnostics);

/// The errors of all families: the assumed ones, otherwise those of the profile.
[[nodiscard]] FamilyErrors errors_of(const UncertaintyOptions& options, const DeviceProfile& profile,
                                     std::int64_t head_dim);

/// The parameters of a fitted profile that are resampled: all but those whose families have assumed errors.
[[nodiscard]] std::vector<OpenParameter> resampled_parameters(const UncertaintyOptions& options,
                                                              const DeviceProfile& profile);

/// The change of a family's cost for measuring its effect on a step: one standard deviation of its error, at least 1 %;
/// 5 % if the error is not known.
[[nodiscard]] double nudge(const FamilyError& error);

/// True if elasticities are computed on this step: on `options.steps` of `steps`, spread evenly.
[[nodiscard]] bool takes_elasticities(const UncertaintyOptions& options, std::int64_t step, std::int64_t steps);

/// The nodes of a job, one at a time, with which the effect of a slow node is simulated: one at random of each of four
/// equal parts of the job, of fewer if it has fewer nodes; none if no node may be slow. The same for all plans and
/// steps.
[[nodiscard]] std::vector<NodeId> probed_nodes(const UncertaintyOptions& options, const NodeList& nodes,
                                               const ClusterSpec& cluster);

/// Clusters whose switches choose other routes, each with another seed of their hash; none if they do not choose by a
/// hash.
[[nodiscard]] std::vector<ClusterSpec> rerouted(const UncertaintyOptions& options, const ClusterSpec& cluster);

}  // namespace hdpsim
