#include "sim/study/uncertainty_options.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "sim/base/random.h"
#include "sim/document/key_table.h"

namespace hdpsim {
namespace {

constexpr double most_samples = 1e5;
constexpr double most_cv = 1;
constexpr double least_nudge = 0.01;
constexpr double usual_nudge = 0.05;
constexpr double most_slowdown = 1000;
constexpr std::uint64_t seeds_of_routes = 1'000'000'000;
constexpr std::int64_t alternatives = 4;  // places of a slow node, and choices of routes, that are simulated

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

const KeyTable<SlowNodes>& slow_node_table() {
  static const auto made = [] {
    KeyTable<SlowNodes> keys("slow nodes");
    keys.number("share", {0, 1}, at(&SlowNodes::share), "how likely each node is slow; 0: none is");
    keys.number("slowdown", {1, most_slowdown}, at(&SlowNodes::slowdown), "how many times longer its kernels take");
    return keys;
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
    keys.map("slow_nodes", slow_node_table(), at(&UncertaintyOptions::slow_nodes),
             "nodes that are slow for a whole run");
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

std::vector<OpenParameter> resampled_parameters(const UncertaintyOptions& options, const DeviceProfile& profile) {
  std::vector<OpenParameter> resampled = open_parameters(profile);
  const auto is_assumed = [&](CostFamily family) { return options.supposed[static_cast<std::size_t>(family)] > 0; };
  std::erase_if(resampled, [&](const OpenParameter& open) {
    const std::vector<CostFamily>& families = open.parameter->families;
    return !families.empty() && std::all_of(families.begin(), families.end(), is_assumed);
  });
  return resampled;
}

double nudge(const FamilyError& error) {
  return error.known() ? std::max(least_nudge, error.deviation()) : usual_nudge;
}

bool takes_elasticities(const UncertaintyOptions& options, std::int64_t step, std::int64_t steps) {
  const std::int64_t count = std::min(options.steps, steps);
  return step == 0 || step * count / steps != (step - 1) * count / steps;
}

std::vector<NodeId> probed_nodes(const UncertaintyOptions& options, const NodeList& nodes, const ClusterSpec& cluster) {
  std::vector<NodeId> probed;
  if (options.slow_nodes.share <= 0 || options.slow_nodes.slowdown <= 1) return probed;
  const std::int64_t count = nodes.count(cluster);
  const std::int64_t parts = std::min(alternatives, count);
  RandomStream random(options.seed, "places of slow nodes");
  for (std::int64_t part = 0; part < parts; ++part) {
    const std::int64_t first = part * count / parts;
    const std::int64_t end = (part + 1) * count / parts;
    probed.push_back(
        nodes.node(static_cast<std::size_t>(first) + random.below(static_cast<std::uint64_t>(end - first))));
  }
  return probed;
}

std::vector<ClusterSpec> rerouted(const UncertaintyOptions& options, const ClusterSpec& cluster) {
  std::vector<ClusterSpec> others;
  if (cluster.routing.policy != Routing::Policy::ecmp) return others;
  RandomStream random(options.seed, "seeds of routes");
  for (std::int64_t i = 0; i < alternatives; ++i) {
    others.push_back(cluster);
    others.back().routing.seed = random.below(seeds_of_routes);
  }
  return others;
}

}  // namespace hdpsim
