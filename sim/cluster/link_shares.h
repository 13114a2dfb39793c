#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "sim/cluster/cluster.h"

namespace hdpsim {

/// A NIC by its place.
struct NicPlace {
  std::int64_t node = 0;
  std::int64_t rail = 0;
};

/// The remaining shares of links with less than their nominal rate, and which planes still carry messages, from
/// ClusterSpec::degraded. Links that are not named there are at full rate and cost nothing.
class LinkShares {
 public:
  explicit LinkShares(const ClusterSpec& cluster);

  struct Link {
    DegradedLink::Kind kind = DegradedLink::Kind::nic;
    std::size_t tier = 0;
    std::int64_t unit = 0;
    std::int64_t index = 0;
    LinkDirection direction = LinkDirection::out;
    friend auto operator<=>(const Link&, const Link&) = default;
  };

  /// The links that the cluster names.
  [[nodiscard]] const std::map<Link, std::vector<double>>& named() const { return shares_; }
  /// Remaining share of its rate, over all ports or planes: in [0, 1].
  [[nodiscard]] double share(const Link& link) const;
  /// True while no link and no plane of one is down.
  [[nodiscard]] bool all_up() const { return all_up_; }
  /// One bit per plane: those on which a message gets from one NIC to another, past the uplinks between their nodes.
  /// O(tiers log n) in the number n of named links.
  [[nodiscard]] std::uint32_t planes_between(const NicPlace& from, const NicPlace& to) const;

 private:
  [[nodiscard]] std::uint32_t planes(const Link& link) const;

  ClusterSpec cluster_;
  std::map<Link, std::vector<double>> shares_;  ///< By port or plane.
  bool all_up_ = true;
};

/// Two nodes that cannot communicate although the cluster joins them: no rail has a plane that is up at both.
struct CutOff {
  std::int64_t from = 0;
  std::int64_t to = 0;
};

/// The first such pair, if links that are down cause one. O((n + tiers)^2 x NICs of a node) for n links that are down.
[[nodiscard]] std::optional<CutOff> find_cut_off(const ClusterSpec& cluster);

}  // namespace hdpsim
