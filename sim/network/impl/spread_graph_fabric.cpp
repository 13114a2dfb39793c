#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <unordered_map>
#include <vector>

#include "sim/base/check.h"
#include "sim/base/units.h"
#include "sim/network/impl/fabrics.h"
#include "sim/network/impl/switch_graph.h"

namespace hdpsim {
namespace {

/// A number of the field of integers modulo 2^61 - 1: sums, products and quotients are exact, so that equal expressions
/// have equal values whatever the order of their terms. Expressions of keys that differ have equal values with a
/// probability of about 2^-60 (Schwartz and Zippel).
class Fingerprint {
 public:
  Fingerprint() = default;
  [[nodiscard]] static Fingerprint of_number(Int128 number) {
    return Fingerprint(static_cast<std::uint64_t>(number % prime));
  }
  /// A number for a pair of keys: reproducible, and otherwise as if drawn.
  [[nodiscard]] static Fingerprint of_key(std::uint64_t first, std::uint64_t second) {
    return of_number(static_cast<Int128>(mixed(mixed(first) ^ second)) + 1);
  }
  [[nodiscard]] std::uint64_t value() const { return value_; }
  [[nodiscard]] bool is_zero() const { return value_ == 0; }

  Fingerprint& operator+=(Fingerprint other) {
    value_ = (value_ + other.value_) % static_cast<std::uint64_t>(prime);
    return *this;
  }
  friend Fingerprint operator*(Fingerprint a, Fingerprint b) { return of_number(Int128{a.value_} * Int128{b.value_}); }
  /// `b` must not be 0. O(log prime).
  friend Fingerprint operator/(Fingerprint a, Fingerprint b) {
    for (std::uint64_t exponent = static_cast<std::uint64_t>(prime) - 2; exponent > 0; exponent >>= 1U) {
      if ((exponent & 1U) != 0) a = a * b;  // by Fermat's little theorem
      b = b * b;
    }
    return a;
  }

 private:
  static constexpr std::int64_t prime = (std::int64_t{1} << 61U) - 1;
  explicit Fingerprint(std::uint64_t value) : value_(value) {}

  std::uint64_t value_ = 0;
};

/// What leaves a switch for a target over one bundle of cables, of all that leaves it.
struct Split {
  const SwitchGraph::Arc* arc;
  std::int64_t part;  ///< Of `whole`.
};

/// Packet by packet: at every switch a message is divided over all cables of shortest ways, in proportion to what each
/// can carry to the target, its own rate or what the switch behind it can pass on.
///
/// Cables that every message uses alike in proportion to their rates fill up together, whatever the traffic: they are
/// one link with the sum of their rates. Whether they do is decided by a fingerprint of the shares of all pairs of
/// switches. A link that could carry all that the NICs on either side of it send can never be a bottleneck and is left
/// out. In a fat tree the uplinks of a switch, or of a group of switches, are one link, or none.
///
/// Cost: one pass over all cables for every switch with NICs, and one more for each to which messages go.
class SpreadGraphFabric final : public Fabric {
 public:
  SpreadGraphFabric(const SwitchGraphSpec& graph, std::int64_t rails, Bandwidth nic, double efficiency)
      : graph_(graph, rails, efficiency), nics_(graph_.nics()), link_of_(2 * graph_.bundles().size(), no_link) {
    for (std::size_t which = 0, place = 0; which < nics_.size(); ++which)
      place_.push_back(nics_[which] > 0 ? place++ : 0);
    make_links(nic);
  }

  [[nodiscard]] FabricPath path(const Port& from, const Port& to) const override {
    return ways_to(graph_.switch_of(to))[place_[graph_.switch_of(from)]];
  }
  [[nodiscard]] bool joins_rails(std::size_t from, std::size_t to) const override {
    return graph_.joins_rails(from, to);
  }
  [[nodiscard]] std::size_t link_count() const override { return links_.size(); }
  [[nodiscard]] Bandwidth rate(std::size_t link) const override { return links_.at(link).rate; }

  [[nodiscard]] std::string name(std::size_t link) const override {
    const Link& own = links_.at(link);
    const std::string first = graph_.name(own.first / 2, 0, own.first % 2);
    if (own.cables == 1) return first;
    return fmt::format("{} and {} more cable{}", first, own.cables - 1, own.cables == 2 ? "" : "s");
  }

 private:
  static constexpr std::size_t no_link = SIZE_MAX;

  /// Cables that fill up together.
  struct Link {
    std::size_t first = 0;  ///< The first of their bundles and its direction: 2 x bundle + direction.
    std::size_t cables = 0;
    Bandwidth rate;
  };
  /// What is known of a bundle in one direction.
  struct Use {
    Fingerprint shares;            ///< Of all pairs of switches, each as a share of the bundle's rate.
    std::int64_t target_nics = 0;  ///< NICs to which messages go over it.
  };

  static std::size_t directed(const SwitchGraph::Arc& arc) { return 2 * arc.bundle + arc.direction; }

  [[nodiscard]] std::int64_t rate_of(std::size_t bundle) const {
    const SwitchGraph::Bundle& own = graph_.bundles()[bundle];
    return bounded_rate(Int128{own.rate.bytes_per_second()} * static_cast<std::int64_t>(own.cables));
  }

  // The switches from which there is a way to a target, nearest first.
  [[nodiscard]] std::vector<std::size_t> nearest_first(const std::vector<std::uint16_t>& distance) const {
    std::vector<std::size_t> order(graph_.switches());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::erase_if(order, [&](std::size_t which) { return distance[which] == SwitchGraph::unreachable; });
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return distance[a] < distance[b]; });
    return order;
  }

  // How all switches divide what goes to a target; `order` is nearest_first().
  [[nodiscard]] std::vector<std::vector<Split>> splits_to(const std::vector<std::uint16_t>& distance,
                                                          const std::vector<std::size_t>& order) const {
    std::vector<std::vector<Split>> splits(graph_.switches());
    std::vector<std::int64_t> passes_on(graph_.switches());
    for (const std::size_t at : order) {
      Int128 sum = distance[at] == 0 ? highest_rate : 0;
      for (const SwitchGraph::Arc& arc : graph_.arcs_of(at)) {
        if (distance[arc.to] + 1 != distance[at]) continue;
        const std::int64_t part = std::min(rate_of(arc.bundle), passes_on[arc.to]);
        splits[at].push_back({&arc, part});
        sum += part;
      }
      passes_on[at] = bounded_rate(sum);
    }
    return splits;
  }

  static Int128 whole(const std::vector<Split>& splits) {
    Int128 sum = 0;
    for (const Split& split : splits) sum += split.part;
    return sum;
  }

  // Sends something of each switch with NICs to the target, and notes what of it crosses which cables.
  void note_uses(std::size_t target, std::vector<Use>& uses) const {
    const std::vector<std::uint16_t>& distance = graph_.distances_to(target);
    const std::vector<std::size_t> order = nearest_first(distance);
    const std::vector<std::vector<Split>> splits = splits_to(distance, order);
    std::vector<Fingerprint> through(graph_.switches());
    for (auto at = order.rbegin(); at != order.rend(); ++at) {
      if (*at == target) continue;
      if (nics_[*at] > 0) through[*at] += Fingerprint::of_key(*at, 0);
      if (through[*at].is_zero()) continue;
      const Fingerprint each = through[*at] / Fingerprint::of_number(whole(splits[*at]));
      for (const Split& split : splits[*at]) {
        const Fingerprint sent = each * Fingerprint::of_number(split.part);
        through[split.arc->to] += sent;
        Use& use = uses[directed(*split.arc)];
        // The distance distinguishes cables one behind the other, which all messages may use alike.
        use.shares += sent * Fingerprint::of_key(target, distance[*at]);
        use.target_nics += nics_[target];
      }
    }
  }

  void make_links(Bandwidth nic) {
    std::vector<Use> uses(link_of_.size());
    for (std::size_t target = 0; target < graph_.switches(); ++target) {
      if (nics_[target] > 0) note_uses(target, uses);
    }
    std::map<std::uint64_t, std::vector<std::size_t>> alike;
    for (std::size_t way = 0; way < uses.size(); ++way) {
      if (uses[way].shares.is_zero()) continue;
      alike[(uses[way].shares / Fingerprint::of_number(rate_of(way / 2))).value()].push_back(way);
    }
    std::vector<std::vector<std::size_t>> groups;
    for (auto& [print, ways] : alike) groups.push_back(std::move(ways));
    std::sort(groups.begin(), groups.end());
    for (const std::vector<std::size_t>& ways : groups) {
      const std::size_t back = ways.front() ^ 1U;  // who sends over a cable receives over it
      const std::int64_t nics = std::min(uses[ways.front()].target_nics, uses[back].target_nics);
      add_link(ways, Int128{nic.bytes_per_second()} * nics);
    }
  }

  // `most`: what the NICs on either side of the cables send at most.
  void add_link(const std::vector<std::size_t>& ways, Int128 most) {
    Int128 sum = 0;
    Link link;
    link.first = ways.front();
    for (const std::size_t way : ways) {
      sum += rate_of(way / 2);
      link.cables += graph_.bundles()[way / 2].cables;
    }
    if (sum >= most) return;
    link.rate = Bandwidth::bytes_per_second(bounded_rate(sum));
    for (const std::size_t way : ways) link_of_[way] = links_.size();
    links_.push_back(link);
  }

  // The ways from all switches with NICs to a target, made when they are first needed and kept.
  const std::vector<FabricPath>& ways_to(std::size_t target) const {
    const auto [entry, is_new] = ways_.try_emplace(target);
    if (is_new) entry->second = find_ways(target);
    return entry->second;
  }

  [[nodiscard]] std::vector<FabricPath> find_ways(std::size_t target) const {
    const std::vector<std::uint16_t>& distance = graph_.distances_to(target);
    const std::vector<std::size_t> order = nearest_first(distance);
    const std::vector<std::vector<Split>> splits = splits_to(distance, order);
    std::vector<FabricPath> ways(graph_.switches());
    std::map<std::size_t, double> loads;
    for (const std::size_t at : order) {
      loads.clear();
      const auto all = static_cast<double>(whole(splits[at]));
      Duration longest;
      for (const Split& split : splits[at]) {
        const double share = static_cast<double>(split.part) / all;
        const FabricPath& rest = ways[split.arc->to];
        longest = std::max(longest, rest.latency);
        if (const std::size_t link = link_of_[directed(*split.arc)]; link != no_link) loads[link] += share;
        for (const RouteLink& one : rest.links.view()) loads[one.link.index()] += share * one.share;
      }
      ways[at].latency = graph_.latency_of(at) + longest;
      for (const auto& [link, share] : loads) ways[at].append(link, nearly_one(share) ? 1 : share);
    }
    std::vector<FabricPath> kept;
    for (std::size_t which = 0; which < ways.size(); ++which) {
      if (nics_[which] > 0) kept.push_back(std::move(ways[which]));
    }
    return kept;
  }

  // Shares that were divided add up to 1 but for rounding.
  static bool nearly_one(double share) { return std::abs(share - 1) < 1e-9; }

  SwitchGraph graph_;
  std::vector<std::int64_t> nics_;    ///< By switch.
  std::vector<std::size_t> place_;    ///< By switch: its place among those with NICs.
  std::vector<std::size_t> link_of_;  ///< By 2 x bundle + direction.
  std::vector<Link> links_;
  mutable std::unordered_map<std::size_t, std::vector<FabricPath>> ways_;  ///< By target switch, then by place.
};

}  // namespace

std::unique_ptr<Fabric> make_spread_graph_fabric(const SwitchGraphSpec& graph, std::int64_t rails, Bandwidth nic,
                                                 double efficiency) {
  return std::make_unique<SpreadGraphFabric>(graph, rails, nic, efficiency);
}

}  // namespace hdpsim
