#include <fmt/format.h>

#include <algorithm>
#include <queue>

#include "sim/cluster/impl/fabric_reader.h"

namespace hdpsim {
namespace {

// Distances in cables, by switch; -1 if a switch cannot be reached.
std::vector<std::int64_t> distances_from(const SwitchGraphSpec& graph, std::size_t start) {
  std::vector<std::vector<std::size_t>> neighbours(graph.switches.size());
  for (const SwitchGraphSpec::Cable& cable : graph.cables) {
    if (cable.is_missing()) continue;
    neighbours[cable.from].push_back(cable.to);
    neighbours[cable.to].push_back(cable.from);
  }
  std::vector<std::int64_t> distance(graph.switches.size(), -1);
  distance[start] = 0;
  std::queue<std::size_t> open({start});
  while (!open.empty()) {
    const std::size_t at = open.front();
    open.pop();
    for (const std::size_t next : neighbours[at]) {
      if (distance[next] >= 0) continue;
      distance[next] = distance[at] + 1;
      open.push(next);
    }
  }
  return distance;
}

}  // namespace

void check_ways(const SwitchGraphSpec& graph, const FabricExtent& extent, const Position& position,
                Diagnostics& diagnostics) {
  const auto nics = static_cast<std::size_t>(extent.nics_per_node);
  for (std::size_t nic = 0; nic < nics; ++nic) {
    const std::vector<std::int64_t> distance = distances_from(graph, graph.attached[nic]);
    std::int64_t farthest = 0;
    for (std::size_t i = nic; i < graph.attached.size(); i += nics) {
      if (distance[graph.attached[i]] < 0) {
        diagnostics.error(
            position, fmt::format("nic {} of node {} has no way to nic {} of node 0: no cables lead from '{}' to '{}'",
                                  nic, i / nics, nic, graph.switches[graph.attached[i]].name,
                                  graph.switches[graph.attached[nic]].name));
        return;
      }
      farthest = std::max(farthest, distance[graph.attached[i]]);
    }
    if (2 * farthest > most_fabric_hops) {
      diagnostics.error(position, fmt::format("ways over the switches may have {} links, at most {} are possible",
                                              2 * farthest, most_fabric_hops));
      return;
    }
  }
}

}  // namespace hdpsim
