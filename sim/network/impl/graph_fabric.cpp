#include <algorithm>
#include <iterator>
#include <vector>

#include "sim/base/check.h"
#include "sim/network/impl/fabrics.h"
#include "sim/network/impl/switch_graph.h"

namespace hdpsim {
namespace {

/// Flow by flow: at every switch a hash of the two NICs chooses among the cables of shortest ways. Each cable has two
/// links, there and back.
class GraphFabric final : public Fabric {
 public:
  GraphFabric(const SwitchGraphSpec& graph, std::int64_t rails, std::uint64_t seed, double efficiency)
      : graph_(graph, rails, efficiency), seed_(seed) {
    for (const SwitchGraph::Bundle& bundle : graph_.bundles()) {
      first_link_.push_back(link_count_);
      link_count_ += 2 * bundle.cables;
    }
  }

  [[nodiscard]] FabricPath path(const Port& from, const Port& to) const override {
    const std::size_t target = graph_.switch_of(to);
    const std::vector<std::uint16_t>& distance = graph_.distances_to(target);
    FlowHash hash(seed_, from, to);
    FabricPath path;
    std::size_t at = graph_.switch_of(from);
    path.latency = graph_.latency_of(at);
    while (at != target) {
      const Hop next = next_hop(at, distance, hash);
      path.append(next.link);
      at = next.to;
      path.latency += graph_.latency_of(at);
    }
    return path;
  }

  [[nodiscard]] bool joins_rails(std::size_t from, std::size_t to) const override {
    return graph_.joins_rails(from, to);
  }

  [[nodiscard]] std::size_t link_count() const override { return link_count_; }
  [[nodiscard]] Bandwidth rate(std::size_t link) const override { return graph_.bundles()[bundle_of(link)].rate; }

  [[nodiscard]] std::string name(std::size_t link) const override {
    const std::size_t bundle = bundle_of(link);
    const std::size_t within = link - first_link_[bundle];
    return graph_.name(bundle, within / 2, within % 2);
  }

 private:
  struct Hop {
    std::size_t link;
    std::size_t to;
  };

  [[nodiscard]] std::size_t bundle_of(std::size_t link) const {
    HDPSIM_CHECK(link < link_count_, "link {} of {}", link, link_count_);
    const auto after = std::upper_bound(first_link_.begin(), first_link_.end(), link);
    return static_cast<std::size_t>(after - first_link_.begin()) - 1;
  }

  [[nodiscard]] Hop next_hop(std::size_t at, const std::vector<std::uint16_t>& distance, FlowHash& hash) const {
    HDPSIM_CHECK(distance[at] != SwitchGraph::unreachable, "no way from switch {}", at);
    const auto is_nearer = [&](const SwitchGraph::Arc& arc) { return distance[arc.to] + 1 == distance[at]; };
    const auto cables = [&](const SwitchGraph::Arc& arc) { return graph_.bundles()[arc.bundle].cables; };
    std::size_t ways = 0;
    for (const SwitchGraph::Arc& arc : graph_.arcs_of(at)) ways += is_nearer(arc) ? cables(arc) : 0;
    std::size_t chosen = hash.choose(ways);
    for (const SwitchGraph::Arc& arc : graph_.arcs_of(at)) {
      if (!is_nearer(arc)) continue;
      if (chosen < cables(arc)) return {first_link_[arc.bundle] + 2 * chosen + arc.direction, arc.to};
      chosen -= cables(arc);
    }
    HDPSIM_CHECK(false, "switch {} has no nearer neighbour", at);
  }

  SwitchGraph graph_;
  std::uint64_t seed_;
  std::vector<std::size_t> first_link_;  ///< By bundle.
  std::size_t link_count_ = 0;
};

}  // namespace

std::unique_ptr<Fabric> make_graph_fabric(const SwitchGraphSpec& graph, std::int64_t rails, std::uint64_t seed,
                                          double efficiency) {
  return std::make_unique<GraphFabric>(graph, rails, seed, efficiency);
}

}  // namespace hdpsim
