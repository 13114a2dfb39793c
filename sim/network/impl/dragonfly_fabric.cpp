#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "sim/network/impl/fabrics.h"

namespace hdpsim {
namespace {

/// The links of a rail are those from leaf to spine and back in all groups, then one per global link and direction.
class DragonflyFabric final : public Fabric {
 public:
  DragonflyFabric(const DragonflySpec& spec, std::int64_t rails, const Routing& routing, double efficiency)
      : groups_(unsigned_of(spec.groups)),
        leaves_(unsigned_of(spec.leaves)),
        spines_(unsigned_of(spec.spines)),
        nodes_per_leaf_(unsigned_of(spec.nodes_per_leaf)),
        global_links_(unsigned_of(spec.global_links)),
        rails_(unsigned_of(rails)),
        routing_(routing),
        local_(spec.local.scaled(efficiency)),
        global_(spec.global.scaled(efficiency)),
        latency_(spec.latency),
        global_latency_(spec.global_latency) {}

  [[nodiscard]] FabricPath path(const Port& from, const Port& to) const override {
    const std::size_t from_leaf = from.node / nodes_per_leaf_;
    const std::size_t to_leaf = to.node / nodes_per_leaf_;
    FabricPath path;
    path.latency = latency_;
    if (from_leaf == to_leaf) return path;
    const std::size_t from_group = from_leaf / leaves_;
    const std::size_t to_group = to_leaf / leaves_;
    if (from_group == to_group) {
      for (const Way& way : ways_of(from, to, spines_)) {
        path.append(local_link(from_leaf, way.which, from.rail, 0), way.share);
        path.append(local_link(to_leaf, way.which, from.rail, 1), way.share);
      }
      path.latency += latency_ * 2;
      return path;
    }
    const std::vector<Way> ways = ways_of(from, to, global_links_);
    append(path, ways, [&](std::size_t which) {
      return local_link(from_leaf, spine_of(from_group, to_group, which), from.rail, 0);
    });
    append(path, ways, [&](std::size_t which) { return global_link(from_group, to_group, which, from.rail); });
    append(path, ways,
           [&](std::size_t which) { return local_link(to_leaf, spine_of(to_group, from_group, which), from.rail, 1); });
    path.latency += latency_ * 3 + global_latency_;
    return path;
  }

  [[nodiscard]] std::size_t link_count() const override { return rails_ * links_of_a_rail(); }
  [[nodiscard]] Bandwidth rate(std::size_t link) const override {
    return link % links_of_a_rail() < local_links() ? local_ : global_;
  }

  [[nodiscard]] std::string name(std::size_t link) const override {
    const std::size_t rail = link / links_of_a_rail();
    std::size_t within = link % links_of_a_rail();
    if (within < local_links()) {
      const std::size_t leaf = within / 2 / spines_;
      return fmt::format("group {} leaf {} spine {} rail {} {}", leaf / leaves_, leaf % leaves_, within / 2 % spines_,
                         rail, within % 2 == 0 ? "up" : "down");
    }
    within -= local_links();
    const std::size_t pair = within / global_links_;
    const std::size_t others = std::max<std::size_t>(1, groups_ - 1);  // one group has no global links
    const std::size_t from = pair / others;
    const std::size_t other = pair % others;
    return fmt::format("group {} to group {} link {} rail {}", from, other < from ? other : other + 1,
                       within % global_links_, rail);
  }

 private:
  /// One of the equal ways of a message, and its share of it.
  struct Way {
    std::size_t which;
    double share;
  };

  // The one that a hash of the two NICs chooses, or all of them.
  [[nodiscard]] std::vector<Way> ways_of(const Port& from, const Port& to, std::size_t ways) const {
    if (routing_.policy == Routing::Policy::ecmp) return {{FlowHash(routing_.seed, from, to).choose(ways), 1}};
    std::vector<Way> all;
    for (std::size_t which = 0; which < ways; ++which) all.push_back({which, 1 / static_cast<double>(ways)});
    return all;
  }

  // Several ways may have a link in common.
  template <class LinkOf>
  static void append(FabricPath& path, const std::vector<Way>& ways, const LinkOf& link_of) {
    std::map<std::size_t, double> shares;
    for (const Way& way : ways) shares[link_of(way.which)] += way.share;
    for (const auto& [link, share] : shares) path.append(link, share);
  }

  [[nodiscard]] std::size_t local_links() const { return groups_ * leaves_ * spines_ * 2; }
  [[nodiscard]] std::size_t links_of_a_rail() const {
    return local_links() + (groups_ > 1 ? groups_ * (groups_ - 1) * global_links_ : 0);
  }
  [[nodiscard]] std::size_t local_link(std::size_t leaf, std::size_t spine, std::size_t rail,
                                       std::size_t direction) const {
    return rail * links_of_a_rail() + (leaf * spines_ + spine) * 2 + direction;
  }
  // The index of `other` among the groups without `group`.
  static std::size_t place_among_others(std::size_t group, std::size_t other) {
    return other < group ? other : other - 1;
  }
  [[nodiscard]] std::size_t global_link(std::size_t from, std::size_t to, std::size_t which, std::size_t rail) const {
    const std::size_t pair = from * (groups_ - 1) + place_among_others(from, to);
    return rail * links_of_a_rail() + local_links() + pair * global_links_ + which;
  }
  // The global links of a group are assigned to its spines in turn.
  [[nodiscard]] std::size_t spine_of(std::size_t group, std::size_t other, std::size_t which) const {
    return (place_among_others(group, other) * global_links_ + which) % spines_;
  }

  std::size_t groups_;
  std::size_t leaves_;
  std::size_t spines_;
  std::size_t nodes_per_leaf_;
  std::size_t global_links_;
  std::size_t rails_;
  Routing routing_;
  Bandwidth local_;
  Bandwidth global_;
  Duration latency_;
  Duration global_latency_;
};

}  // namespace

std::unique_ptr<Fabric> make_dragonfly_fabric(const DragonflySpec& dragonfly, std::int64_t rails,
                                              const Routing& routing, double efficiency) {
  return std::make_unique<DragonflyFabric>(dragonfly, rails, routing, efficiency);
}

}  // namespace hdpsim
