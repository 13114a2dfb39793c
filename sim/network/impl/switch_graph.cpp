#include "sim/network/impl/switch_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <queue>

namespace hdpsim {

SwitchGraph::SwitchGraph(const SwitchGraphSpec& graph, std::int64_t rails, double efficiency)
    : graph_(graph), rails_(unsigned_of(rails)), arcs_(graph.switches.size()) {
  for (const SwitchGraphSpec::Cable& cable : graph.cables) add_bundle(cable, cable.bandwidth.scaled(efficiency));
  find_islands();
}

void SwitchGraph::add_bundle(const SwitchGraphSpec::Cable& cable, Bandwidth rate) {
  const auto cables = unsigned_of(cable.count);
  std::size_t& parallel = parallel_[std::minmax(cable.from, cable.to)];
  if (!cable.is_missing()) {
    arcs_[cable.from].push_back({bundles_.size(), cable.to, 0});
    arcs_[cable.to].push_back({bundles_.size(), cable.from, 1});
  }
  bundles_.push_back({{cable.from, cable.to}, cables, parallel, std::max(rate_of_down_link, rate), cable.is_missing()});
  parallel += cables;
}

// Gives switches with a path to each other the same island.
void SwitchGraph::find_islands() {
  constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
  island_.assign(arcs_.size(), none);
  for (std::size_t start = 0; start < arcs_.size(); ++start) {
    if (island_[start] != none) continue;
    std::vector<std::size_t> open{start};
    island_[start] = start;
    while (!open.empty()) {
      const std::size_t at = open.back();
      open.pop_back();
      for (const Arc& link : arcs_[at]) {
        if (island_[link.to] != none) continue;
        island_[link.to] = start;
        open.push_back(link.to);
      }
    }
  }
}

std::vector<std::int64_t> SwitchGraph::nics() const {
  std::vector<std::int64_t> nics(arcs_.size());
  for (const std::size_t which : graph_.attached) ++nics[which];
  return nics;
}

const std::vector<std::uint16_t>& SwitchGraph::distances_to(std::size_t target) const {
  const auto [entry, is_new] = distances_.try_emplace(target);
  std::vector<std::uint16_t>& distance = entry->second;
  if (!is_new) return distance;
  distance.assign(arcs_.size(), unreachable);
  distance[target] = 0;
  std::queue<std::size_t> open({target});
  while (!open.empty()) {
    const std::size_t at = open.front();
    open.pop();
    for (const Arc& link : arcs_[at]) {  // cables go both ways
      if (distance[link.to] != unreachable) continue;
      distance[link.to] = static_cast<std::uint16_t>(distance[at] + 1);
      open.push(link.to);
    }
  }
  return distance;
}

std::string SwitchGraph::name(std::size_t bundle, std::size_t cable, std::size_t direction) const {
  const Bundle& own = bundles_[bundle];
  const auto& [first, second] = own.ends;
  const std::size_t parallel = own.first_parallel + cable;
  const std::string which = parallel > 0 ? fmt::format(" {}", parallel) : "";
  return fmt::format("{} to {}{}", graph_.switches[direction == 0 ? first : second].name,
                     graph_.switches[direction == 0 ? second : first].name, which);
}

}  // namespace hdpsim
