#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "sim/base/check.h"
#include "sim/base/division.h"
#include "sim/cluster/link_shares.h"
#include "sim/network/impl/fabrics.h"

namespace hdpsim {
namespace {

Bandwidth product(Bandwidth rate, std::int64_t links) {
  return Bandwidth::bytes_per_second(bounded_rate(Int128{rate.bytes_per_second()} * links));
}

// The rate of the uplinks of a full unit; exact without oversubscription, so that they then never seem to bind.
Bandwidth uplink_rate(const SwitchTier& tier, Bandwidth below) {
  const Bandwidth full = product(below, tier.fan_in);
  return tier.oversubscription == 1 ? full : full.scaled(1 / tier.oversubscription);
}

std::int64_t units_of(std::int64_t nodes, std::int64_t nodes_per_unit) {
  return divided(nodes, nodes_per_unit);
}

/// Tiers of switches. NIC i of every node is on rail i, and each rail is a switch plane of its own up to the last tier;
/// or there is one plane, on which all NICs are. A unit of a tier (a ToR, ...) has uplinks and downlinks for each rail,
/// with a total rate of fan_in x (rate of one link below) / oversubscription. With adaptive routing they act as one
/// link, which exists only if the unit can send more, or if it is degraded. With ECMP the number of uplinks is that
/// total over the rate of a NIC (or as the tier says), and a flow takes one of them: the path up fixes the switches of
/// the path down. Where NICs have several ports, one link represents its counterparts in all planes.
class ClosFabric final : public Fabric {
 public:
  ClosFabric(const ClusterSpec& cluster, double efficiency)
      : tiers_(cluster.tiers),
        routing_(cluster.routing),
        has_rails_(cluster.has_rails),
        rails_(unsigned_of(cluster.rails())),
        nic_(cluster.fastest_nic().scaled(efficiency)) {
    for (std::size_t tier = 0; tier < tiers_.size(); ++tier) {
      nodes_per_unit_.push_back(unsigned_of(cluster.nodes_per_unit(tier)));
    }
    add_links(cluster);
    const LinkShares shares(cluster);
    for (const auto& [link, planes] : shares.named()) {
      if (link.kind == DegradedLink::Kind::tier) degrade(link, shares.share(link));
    }
  }

  [[nodiscard]] FabricPath path(const Port& from, const Port& to) const override {
    FabricPath path;
    const std::size_t top = turn_around_tier(from.node, to.node);
    path.latency = tiers_[top].latency;
    FlowHash hash(routing_.seed, from, to);
    std::size_t chosen = 0;
    std::size_t chosen_of = 1;
    for (const TierLinks& links : links_) {
      if (links.tier >= top) break;
      // The uplinks of a unit fan out from those of the units below: the choice there restricts the choice here.
      const bool nested = links.uplinks % chosen_of == 0;
      const std::size_t ways = nested ? links.uplinks / chosen_of : links.uplinks;
      chosen = (nested ? chosen * ways : 0) + (ways > 1 ? hash.choose(ways) : 0);
      chosen_of = links.uplinks;
      path.append(links.id(from.node / nodes_per_unit_[links.tier], plane_of(from.rail), chosen, 0));
      path.append(links.id(to.node / nodes_per_unit_[links.tier], plane_of(to.rail), chosen, 1));
    }
    return path;
  }

  // If c of the m nodes are in a unit, c x (m - c) flows go up from it, and the same number come down.
  [[nodiscard]] std::optional<std::vector<FabricLoad>> all_pairs(std::span<const std::size_t> nodes,
                                                                 std::size_t rail) const override {
    std::vector<FabricLoad> loads;
    for (const TierLinks& links : links_) {
      if (links.uplinks > 1) return std::nullopt;  // a hash spreads the pairs
      for (std::size_t first = 0; first < nodes.size();) {
        const std::size_t unit = nodes[first] / nodes_per_unit_[links.tier];
        std::size_t last = first;
        while (last < nodes.size() && nodes[last] / nodes_per_unit_[links.tier] == unit) ++last;
        const double flows = static_cast<double>(last - first) * static_cast<double>(nodes.size() - (last - first));
        first = last;
        if (flows == 0) continue;
        loads.push_back({links.id(unit, plane_of(rail), 0, 0), flows});
        loads.push_back({links.id(unit, plane_of(rail), 0, 1), flows});
      }
    }
    return loads;
  }

  [[nodiscard]] std::size_t link_count() const override { return count_; }

  [[nodiscard]] Bandwidth rate(std::size_t link) const override {
    if (!degraded_.empty()) {
      const auto found = degraded_.find(link);
      if (found != degraded_.end()) return found->second;
    }
    return links_[parts(link).links].rate;
  }

  [[nodiscard]] std::string name(std::size_t link) const override {
    const Parts part = parts(link);
    const TierLinks& links = links_[part.links];
    const std::string_view direction = part.direction == 0 ? "up" : "down";
    const std::string which = links.uplinks > 1 ? fmt::format(" {}", part.uplink) : "";
    const std::string rail = has_rails_ ? fmt::format(" rail {}", part.rail) : "";
    return fmt::format("{} {}{} {}{}", tiers_[links.tier].name, part.unit, rail, direction, which);
  }

 private:
  /// Up- and downlinks of a tier.
  struct TierLinks {
    std::size_t tier;
    std::size_t first;  ///< Id of the first one.
    std::size_t units;
    std::size_t rails;
    std::size_t uplinks;  ///< Per unit and rail.
    Bandwidth rate;       ///< Rate of one uplink.
    [[nodiscard]] std::size_t id(std::size_t unit, std::size_t rail, std::size_t uplink, std::size_t direction) const {
      return first + ((unit * rails + rail) * uplinks + uplink) * 2 + direction;
    }
  };
  struct Parts {
    std::size_t links;  ///< Index into links_.
    std::size_t unit;
    std::size_t rail;
    std::size_t uplink;
    std::size_t direction;  ///< 0: up. 1: down.
  };

  [[nodiscard]] std::size_t plane_of(std::size_t nic) const { return has_rails_ ? nic : 0; }

  void add_links(const ClusterSpec& cluster) {
    // Of a node, all of whose NICs on a plane send over its switches.
    Bandwidth below =
        product(nic_, cluster.nics_per_node / cluster.rails());  // Total uplink rate of a unit of the tier below ...
    Bandwidth most_from_below = below;                           // ... and the maximum that can ever pass over them.
    for (std::size_t tier = 0; tier < tiers_.size(); ++tier) {
      const std::int64_t units = units_of(cluster.nodes(), cluster.nodes_per_unit(tier));
      if (units == 1) return;
      const Bandwidth all = uplink_rate(tiers_[tier], below);
      const Bandwidth most = product(most_from_below, tiers_[tier].fan_in);
      const std::size_t uplinks = uplinks_of(tiers_[tier], all);
      if (most > all || uplinks > 1 || is_degraded(cluster, tier)) {
        links_.push_back({tier, count_, unsigned_of(units), rails_, uplinks, all / static_cast<std::int64_t>(uplinks)});
        count_ += 2 * unsigned_of(units) * rails_ * uplinks;
      }
      below = all;
      most_from_below = std::min(most, all);
    }
  }

  [[nodiscard]] std::size_t uplinks_of(const SwitchTier& tier, Bandwidth all) const {
    if (routing_.policy == Routing::Policy::adaptive) return 1;
    if (tier.uplinks) return unsigned_of(*tier.uplinks);
    const double nics = static_cast<double>(all.bytes_per_second()) / static_cast<double>(nic_.bytes_per_second());
    return std::max<std::size_t>(1, static_cast<std::size_t>(std::llround(nics)));
  }

  static bool is_degraded(const ClusterSpec& cluster, std::size_t tier) {
    return std::any_of(cluster.degraded.begin(), cluster.degraded.end(), [&](const DegradedLink& link) {
      return link.kind == DegradedLink::Kind::tier && link.tier == tier;
    });
  }

  // Links that are down are on no route; the solver needs a rate above zero all the same.
  void degrade(const LinkShares::Link& link, double share) {
    const auto found =
        std::find_if(links_.begin(), links_.end(), [&](const TierLinks& l) { return l.tier == link.tier; });
    HDPSIM_CHECK(found != links_.end(), "tier {} has no links to degrade", link.tier);
    for (std::size_t uplink = 0; uplink < found->uplinks; ++uplink) {
      const std::size_t id = found->id(unsigned_of(link.unit), unsigned_of(link.index), uplink,
                                       link.direction == LinkDirection::out ? 0 : 1);
      degraded_.emplace(id, std::max(rate_of_down_link, found->rate.scaled(share)));
    }
  }

  [[nodiscard]] std::size_t turn_around_tier(std::size_t from, std::size_t to) const {
    for (std::size_t tier = 0; tier < tiers_.size(); ++tier) {
      if (from / nodes_per_unit_[tier] == to / nodes_per_unit_[tier]) return tier;
    }
    HDPSIM_CHECK(false, "no tier joins nodes {} and {}", from, to);
  }

  [[nodiscard]] Parts parts(std::size_t link) const {
    const auto above =
        std::find_if(links_.rbegin(), links_.rend(), [&](const TierLinks& links) { return link >= links.first; });
    HDPSIM_CHECK(above != links_.rend() && link < count_, "link {} of {}", link, count_);
    const std::size_t within = link - above->first;
    const std::size_t bundle = within / 2 / above->uplinks;
    return {static_cast<std::size_t>(above.base() - links_.begin()) - 1, bundle / rails_, bundle % rails_,
            within / 2 % above->uplinks, within % 2};
  }

  std::vector<SwitchTier> tiers_;
  Routing routing_;
  bool has_rails_;
  std::size_t rails_;
  Bandwidth nic_;
  std::vector<std::size_t> nodes_per_unit_;  ///< By tier.
  std::vector<TierLinks> links_;             ///< Links of the tiers that have any, lowest first.
  std::map<std::size_t, Bandwidth> degraded_;
  std::size_t count_ = 0;
};

}  // namespace

std::unique_ptr<Fabric> make_clos_fabric(const ClusterSpec& cluster, double efficiency) {
  return std::make_unique<ClosFabric>(cluster, efficiency);
}

}  // namespace hdpsim
