#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <queue>
#include <unordered_map>
#include <vector>

#include "sim/base/check.h"
#include "sim/network/impl/fabrics.h"
#include "sim/network/impl/flow_hash.h"

namespace hdpsim {
namespace {

/// Ways are found by their distance to the switch where they end: one breadth-first search a switch that NICs hang on, made
/// when it is first needed and kept. Memory: O(switches x switches with NICs).
class GraphFabric final : public Fabric {
 public:
  GraphFabric(const SwitchGraphSpec& graph, std::int64_t rails, std::uint64_t seed, double efficiency)
      : graph_(graph), rails_(static_cast<std::size_t>(rails)), seed_(seed), arcs_(graph.switches.size()) {
    for (const SwitchGraphSpec::Cable& cable : graph.cables) {
      for (std::int64_t i = 0; i < cable.count; ++i) {
        add_link(cable.from, cable.to, cable.bandwidth.scaled(efficiency));
        add_link(cable.to, cable.from, cable.bandwidth.scaled(efficiency));
      }
    }
    find_islands();
    find_slowest();
  }

  [[nodiscard]] FabricPath path(const Port& from, const Port& to) const override {
    const std::size_t target = switch_of(to);
    const std::vector<std::uint16_t>& distance = distances_to(target);
    FlowHash hash(seed_, from, to);
    FabricPath path;
    std::size_t at = switch_of(from);
    path.latency = graph_.switches[at].latency;
    while (at != target) {
      const Link& next = next_link(at, distance, hash);
      path.append(next.id);
      at = next.to;
      path.latency += graph_.switches[at].latency;
    }
    return path;
  }

  [[nodiscard]] bool joins_rails(std::size_t from, std::size_t to) const override {
    return island_[switch_of({0, from})] == island_[switch_of({0, to})];
  }

  [[nodiscard]] std::size_t link_count() const override { return ends_.size(); }
  [[nodiscard]] Bandwidth rate(std::size_t link) const override { return ends_[link].rate; }

  [[nodiscard]] std::string name(std::size_t link) const override {
    const Ends& ends = ends_.at(link);
    const std::string which = ends.parallel > 0 ? fmt::format(" {}", ends.parallel) : "";
    return fmt::format("{} to {}{}", graph_.switches[ends.from].name, graph_.switches[ends.to].name, which);
  }

  [[nodiscard]] Bandwidth slowest(std::size_t /*first*/, std::size_t /*last*/, Bandwidth nic) const override {
    return std::min(nic, slowest_);
  }

 private:
  struct Link {
    std::size_t id;
    std::size_t to;
  };
  struct Ends {
    std::size_t from;
    std::size_t to;
    std::size_t parallel;  ///< Number among the links between these two.
    Bandwidth rate;
  };

  void add_link(std::size_t from, std::size_t to, Bandwidth rate) {
    const auto parallel =
        std::count_if(arcs_[from].begin(), arcs_[from].end(), [&](const Link& l) { return l.to == to; });
    arcs_[from].push_back({ends_.size(), to});
    ends_.push_back({from, to, static_cast<std::size_t>(parallel), rate});
  }

  // Switches that have a way to each other have the same island.
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
        for (const Link& link : arcs_[at]) {
          if (island_[link.to] != none) continue;
          island_[link.to] = start;
          open.push_back(link.to);
        }
      }
    }
  }

  // Over the ring of all nodes in their order, rail by rail.
  void find_slowest() {
    slowest_ = Bandwidth::bytes_per_second(std::numeric_limits<std::int64_t>::max());
    const std::size_t nodes = graph_.attached.size() / rails_;
    for (std::size_t node = 0; node < nodes && nodes > 1; ++node) {
      for (std::size_t rail = 0; rail < rails_; ++rail) {
        const FabricPath hop = path({node, rail}, {(node + 1) % nodes, rail});
        for (const std::uint32_t link : hop.links()) slowest_ = std::min(slowest_, ends_[link].rate);
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
      for (const Link& link : arcs_[at]) {  // cables go both ways
        if (distance[link.to] != unreachable) continue;
        distance[link.to] = static_cast<std::uint16_t>(distance[at] + 1);
        open.push(link.to);
      }
    }
    return distance;
  }

  [[nodiscard]] const Link& next_link(std::size_t at, const std::vector<std::uint16_t>& distance,
                                      FlowHash& hash) const {
    HDPSIM_CHECK(distance[at] != unreachable, "no way from switch '{}'", graph_.switches[at].name);
    const auto is_nearer = [&](const Link& link) { return distance[link.to] + 1 == distance[at]; };
    const auto ways = std::count_if(arcs_[at].begin(), arcs_[at].end(), is_nearer);
    std::size_t skip = hash.choose(static_cast<std::size_t>(ways));
    for (const Link& link : arcs_[at]) {
      if (is_nearer(link) && skip-- == 0) return link;
    }
    HDPSIM_CHECK(false, "switch '{}' has no nearer neighbour", graph_.switches[at].name);
  }

  static constexpr std::uint16_t unreachable = std::numeric_limits<std::uint16_t>::max();

  SwitchGraphSpec graph_;
  std::size_t rails_;
  std::uint64_t seed_;
  std::vector<std::vector<Link>> arcs_;  ///< By switch.
  std::vector<Ends> ends_;               ///< By link.
  std::vector<std::size_t> island_;      ///< By switch.
  Bandwidth slowest_;
  mutable std::unordered_map<std::size_t, std::vector<std::uint16_t>> distances_;  ///< By target switch.
};

}  // namespace

std::unique_ptr<Fabric> make_graph_fabric(const SwitchGraphSpec& graph, std::int64_t rails, std::uint64_t seed,
                                          double efficiency) {
  return std::make_unique<GraphFabric>(graph, rails, seed, efficiency);
}

}  // namespace hdpsim
