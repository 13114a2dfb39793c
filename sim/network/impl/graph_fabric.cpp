#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/base/check.h"
#include "sim/network/impl/fabrics.h"
#include "sim/network/impl/flow_hash.h"

namespace hdpsim {
namespace {

/// Paths follow the distance to the switch where they end: one breadth-first search per switch with NICs, made when it
/// is first needed and kept. Memory: O(switches x switches with NICs).
class GraphFabric final : public Fabric {
 public:
  GraphFabric(const SwitchGraphSpec& graph, std::int64_t rails, std::uint64_t seed, double efficiency)
      : graph_(graph), rails_(static_cast<std::size_t>(rails)), seed_(seed), arcs_(graph.switches.size()) {
    for (const SwitchGraphSpec::Cable& cable : graph.cables) add_bundle(cable, cable.bandwidth.scaled(efficiency));
    find_islands();
  }

  [[nodiscard]] FabricPath path(const Port& from, const Port& to) const override {
    const std::size_t target = switch_of(to);
    const std::vector<std::uint16_t>& distance = distances_to(target);
    FlowHash hash(seed_, from, to);
    FabricPath path;
    std::size_t at = switch_of(from);
    path.latency = graph_.switches[at].latency;
    while (at != target) {
      const Hop next = next_hop(at, distance, hash);
      path.append(next.link);
      at = next.to;
      path.latency += graph_.switches[at].latency;
    }
    return path;
  }

  [[nodiscard]] bool joins_rails(std::size_t from, std::size_t to) const override {
    return island_[switch_of({0, from})] == island_[switch_of({0, to})];
  }

  [[nodiscard]] std::size_t link_count() const override { return link_count_; }
  [[nodiscard]] Bandwidth rate(std::size_t link) const override { return bundle_of(link).rate; }

  [[nodiscard]] std::string name(std::size_t link) const override {
    const Bundle& bundle = bundle_of(link);
    const std::size_t within = link - bundle.first_link;
    const std::size_t parallel = bundle.first_parallel + within / 2;
    const auto& [from, to] = bundle.ends;
    const std::string which = parallel > 0 ? fmt::format(" {}", parallel) : "";
    return fmt::format("{} to {}{}", graph_.switches[within % 2 == 0 ? from : to].name,
                       graph_.switches[within % 2 == 0 ? to : from].name, which);
  }

 private:
  /// Equal cables between two switches: two links each, there and back.
  struct Bundle {
    std::size_t first_link;
    std::pair<std::size_t, std::size_t> ends;
    std::size_t cables;
    std::size_t first_parallel;  ///< Cables between the two switches in earlier bundles.
    Bandwidth rate;
  };
  /// A bundle as one of its ends sees it.
  struct Arc {
    std::size_t bundle;
    std::size_t to;
    std::size_t direction;  ///< 0: as the cable was written. 1: back.
  };
  struct Hop {
    std::size_t link;
    std::size_t to;
  };

  void add_bundle(const SwitchGraphSpec::Cable& cable, Bandwidth rate) {
    const auto cables = static_cast<std::size_t>(cable.count);
    std::size_t& parallel = parallel_[std::minmax(cable.from, cable.to)];
    if (!cable.is_missing()) {
      arcs_[cable.from].push_back({bundles_.size(), cable.to, 0});
      arcs_[cable.to].push_back({bundles_.size(), cable.from, 1});
    }
    // A missing cable keeps its number and is on no path; solvers need a rate above zero all the same.
    bundles_.push_back({link_count_, {cable.from, cable.to}, cables, parallel, std::max(rate_of_down_link, rate)});
    parallel += cables;
    link_count_ += 2 * cables;
  }

  [[nodiscard]] const Bundle& bundle_of(std::size_t link) const {
    HDPSIM_CHECK(link < link_count_, "link {} of {}", link, link_count_);
    const auto after = std::upper_bound(bundles_.begin(), bundles_.end(), link,
                                        [](std::size_t id, const Bundle& bundle) { return id < bundle.first_link; });
    return *std::prev(after);
  }

  // Gives switches with a path to each other the same island.
  void find_islands() {
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

  [[nodiscard]] std::size_t switch_of(const Port& port) const {
    return graph_.attached[port.node * rails_ + port.rail];
  }

  [[nodiscard]] const std::vector<std::uint16_t>& distances_to(std::size_t target) const {
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

  [[nodiscard]] Hop next_hop(std::size_t at, const std::vector<std::uint16_t>& distance, FlowHash& hash) const {
    HDPSIM_CHECK(distance[at] != unreachable, "no way from switch '{}'", graph_.switches[at].name);
    const auto is_nearer = [&](const Arc& arc) { return distance[arc.to] + 1 == distance[at]; };
    std::size_t ways = 0;
    for (const Arc& arc : arcs_[at]) ways += is_nearer(arc) ? bundles_[arc.bundle].cables : 0;
    std::size_t chosen = hash.choose(ways);
    for (const Arc& arc : arcs_[at]) {
      if (!is_nearer(arc)) continue;
      const Bundle& bundle = bundles_[arc.bundle];
      if (chosen < bundle.cables) return {bundle.first_link + 2 * chosen + arc.direction, arc.to};
      chosen -= bundle.cables;
    }
    HDPSIM_CHECK(false, "switch '{}' has no nearer neighbour", graph_.switches[at].name);
  }

  static constexpr std::uint16_t unreachable = std::numeric_limits<std::uint16_t>::max();

  SwitchGraphSpec graph_;
  std::size_t rails_;
  std::uint64_t seed_;
  std::vector<std::vector<Arc>> arcs_;                                   ///< By switch.
  std::vector<Bundle> bundles_;                                          ///< In the order of their links.
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> parallel_;  ///< Cables between two switches so far.
  std::size_t link_count_ = 0;
  std::vector<std::size_t> island_;                                                ///< By switch.
  mutable std::unordered_map<std::size_t, std::vector<std::uint16_t>> distances_;  ///< By target switch.
};

}  // namespace

std::unique_ptr<Fabric> make_graph_fabric(const SwitchGraphSpec& graph, std::int64_t rails, std::uint64_t seed,
                                          double efficiency) {
  return std::make_unique<GraphFabric>(graph, rails, seed, efficiency);
}

}  // namespace hdpsim
