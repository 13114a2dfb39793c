#include "sim/production/incidents.h"

#include <fmt/format.h>

#include <cmath>

#include "sim/base/diagnostic.h"
#include "sim/base/random.h"

namespace hdpsim {
namespace {

void require_countable(double expected, const char* what, const char* key, const Position& place) {
  if (expected <= most_incidents) return;
  Diagnostics diagnostics;
  diagnostics.error(place,
                    fmt::format("the run would have {:.3g} {}, more than {:.0e}", expected, what, most_incidents),
                    fmt::format("make production.time shorter or {} longer", key));
  diagnostics.throw_if_any();
}

// The times of a Poisson process up to `end_s`, for each of which `take(at_s)` is called.
template <class Take>
void draw_times(RandomStream& random, double mean_s, double end_s, const Take& take) {
  for (double at_s = 0;;) {
    at_s -= mean_s * std::log1p(-random.uniform());
    if (!(at_s <= end_s)) return;
    take(at_s);
  }
}

double log_uniform(RandomStream& random, const Stragglers::LogRange& range) {
  return range.from * std::pow(range.to / range.from, random.uniform());
}

}  // namespace

Incidents draw_incidents(const ProductionOptions& production, const std::optional<FailureModel>& failures,
                         const NodeList& nodes, const ClusterSpec& cluster, const Position& place) {
  Incidents drawn;
  const auto node_of = [&](DeviceId device) { return static_cast<std::int64_t>(cluster.node_of(device).index()); };
  if (failures) {
    const std::int64_t count = nodes.count(cluster);
    const double mean_s = failures->node_mtbf_s / static_cast<double>(count);
    const double end_s = production.time_s + failures->restart_s;
    require_countable(end_s / mean_s, "failures", "failures.node_mtbf", place);
    RandomStream random(failures->seed, "node failures of a run");
    draw_times(random, mean_s, end_s, [&](double at_s) {
      const auto drawn_place = static_cast<std::size_t>(random.below(static_cast<std::uint64_t>(count)));
      drawn.failures.push_back({at_s, static_cast<std::int64_t>(nodes.node(drawn_place).index())});
    });
  }
  if (const auto& stragglers = production.stragglers) {
    const std::int64_t count = nodes.devices(cluster);
    const double mean_s = stragglers->device_mtbf_s / static_cast<double>(count);
    require_countable(production.time_s / mean_s, "slow spells", "production.stragglers.device_mtbf", place);
    RandomStream random(production.seed, "slow spells");
    draw_times(random, mean_s, production.time_s, [&](double at_s) {
      const auto drawn_place = static_cast<std::size_t>(random.below(static_cast<std::uint64_t>(count)));
      const DeviceId device = nodes.device(drawn_place, cluster.devices_per_node);
      const double slowdown = log_uniform(random, stragglers->slowdown);
      const double end_s = at_s + log_uniform(random, stragglers->duration_s);
      drawn.slow.push_back({at_s, end_s, static_cast<std::int64_t>(device.index()), node_of(device), slowdown});
    });
  }
  return drawn;
}

}  // namespace hdpsim
