#include "sim/cluster/impl/link_selector.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/division.h"
#include "sim/cluster/node_list.h"

namespace hdpsim {
namespace {

constexpr std::string_view forms =
    "write node 3 nic 2, node 3 nic 2 port 1, node 3 gpu 1 nvlink out, TIER 1 rail 0 up, TIER 1 rail 0 "
    "plane 1 or, without rails, TIER 1 up or, in a graph, SWITCH to SWITCH";

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

std::optional<std::int64_t> number_of(std::string_view word) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc{} || end != word.data() + word.size() || number < 0) return std::nullopt;
  return number;
}

/// A selector that is parsed, but not yet checked for an existing link.
struct Words {
  DegradedLink link;
  std::string_view direction;  ///< Empty: both.
};

// Fills in `kind` and `tier`; false if words 0 and 2 are no valid combination.
bool name_kind(const std::vector<std::string_view>& words, const ClusterSpec& cluster, DegradedLink& link) {
  if (words[0] == "node") {
    link.kind = words[2] == "gpu" ? DegradedLink::Kind::nvlink : DegradedLink::Kind::nic;
    return words[2] == "nic" || words[2] == "gpu";
  }
  const auto tier = std::find_if(cluster.tiers.begin(), cluster.tiers.end(),
                                 [&](const SwitchTier& known) { return known.name == words[0]; });
  link.kind = DegradedLink::Kind::tier;
  link.tier = static_cast<std::size_t>(tier - cluster.tiers.begin());
  return words[2] == "rail" && tier != cluster.tiers.end();
}

// Takes the words behind the first four, except for the direction: `nvlink` (`pcie` in nodes without), `port 1` or
// `plane 1`. Returns their number.
std::optional<std::size_t> take_rest(const std::vector<std::string_view>& words, const ClusterSpec& cluster,
                                     DegradedLink& link) {
  if (link.kind == DegradedLink::Kind::nvlink) {
    const std::string_view way = cluster.has_nvlink() ? "nvlink" : "pcie";
    return words.size() > 4 && words[4] == way ? std::optional<std::size_t>(1) : std::nullopt;
  }
  const std::string_view part = link.kind == DegradedLink::Kind::nic ? "port" : "plane";
  if (words.size() < 5 || words[4] != part) return 0;
  if (words.size() > 5) link.port = number_of(words[5]);
  return link.port ? std::optional<std::size_t>(2) : std::nullopt;
}

std::optional<Words> take_apart(std::string_view text, const ClusterSpec& cluster) {
  std::vector<std::string_view> words = words_of(text);
  const bool is_of_tier = !words.empty() && words[0] != "node";
  if (is_of_tier && !cluster.has_rails && words.size() > 1) words.insert(words.begin() + 2, {"rail", "0"});
  if (words.size() < 4) return std::nullopt;
  const auto unit = number_of(words[1]);
  const auto index = number_of(words[3]);
  Words parts;
  if (!unit || !index || !name_kind(words, cluster, parts.link)) return std::nullopt;
  parts.link.unit = *unit;
  parts.link.index = *index;
  const auto rest = take_rest(words, cluster, parts.link);
  if (!rest) return std::nullopt;
  const std::size_t used = 4 + *rest;
  if (words.size() > used) parts.direction = words[used];
  return words.size() <= used + 1 ? std::optional(parts) : std::nullopt;
}

// Why there is no such link; empty if there is one.
std::string why_not(const DegradedLink& link, const ClusterSpec& cluster) {
  const std::int64_t nodes = cluster.nodes();
  std::int64_t units = nodes;
  std::int64_t indices = cluster.nics_per_node;
  if (link.kind == DegradedLink::Kind::nvlink) indices = cluster.devices_per_node;
  if (link.kind == DegradedLink::Kind::tier) {
    indices = cluster.rails();
    const std::int64_t nodes_per_unit = cluster.nodes_per_unit(link.tier);
    units = divided(nodes, nodes_per_unit);
    if (units == 1) {
      return fmt::format("tier '{}' joins all nodes: it has no uplinks", cluster.tiers[link.tier].name);
    }
  }
  if (link.kind == DegradedLink::Kind::nvlink ? cluster.devices_per_node == 1 : nodes == 1) {
    return "the cluster has no such links";
  }
  if (link.unit >= units) return fmt::format("{} is too high, they are 0 to {}", link.unit, units - 1);
  if (link.index >= indices) return fmt::format("{} is too high, they are 0 to {}", link.index, indices - 1);
  if (link.port && *link.port >= cluster.ports_per_nic) {
    return fmt::format("{} is too high, ports are 0 to {}", *link.port, cluster.ports_per_nic - 1);
  }
  return "";
}

std::optional<std::size_t> find_switch(const SwitchGraphSpec& graph, std::string_view name) {
  const auto found = std::find_if(graph.switches.begin(), graph.switches.end(),
                                  [&](const SwitchGraphSpec::Switch& known) { return known.name == name; });
  if (found == graph.switches.end()) return std::nullopt;
  return static_cast<std::size_t>(found - graph.switches.begin());
}

/// One cable between two switches.
struct CableName {
  std::size_t from = 0;
  std::size_t to = 0;
  std::int64_t number = 0;
};

std::optional<CableName> parse(std::string_view text, const SwitchGraphSpec& graph) {
  constexpr std::string_view between = " to ";
  const std::size_t at = text.find(between);
  if (at == std::string_view::npos) return std::nullopt;
  const auto from = find_switch(graph, text.substr(0, at));
  std::string_view rest = text.substr(at + between.size());
  std::int64_t number = 0;
  if (const std::size_t space = rest.rfind(' '); space != std::string_view::npos) {
    const auto last = parse_closed_range(rest.substr(space + 1));
    if (!last || last->first != last->last) return std::nullopt;
    number = last->first;
    rest = rest.substr(0, space);
  }
  const auto to = find_switch(graph, rest);
  return from && to ? std::optional(CableName{*from, *to, number}) : std::nullopt;
}

// Splits cable `number` off the cables at `place`. Returns its new index.
std::size_t split(std::vector<SwitchGraphSpec::Cable>& cables, std::size_t place, std::int64_t number) {
  SwitchGraphSpec::Cable before = cables[place];
  SwitchGraphSpec::Cable after = before;
  after.count -= number + 1;
  before.count = number;
  cables[place].count = 1;
  const auto at = [&](std::size_t index) { return cables.begin() + static_cast<std::ptrdiff_t>(index); };
  if (after.count > 0) cables.insert(at(place + 1), after);
  if (before.count > 0) cables.insert(at(place), before);
  return before.count > 0 ? place + 1 : place;
}

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

std::vector<DegradedLink> parse_link_selector(std::string_view text, const ClusterSpec& cluster,
                                              const Position& position, Diagnostics& diagnostics) {
  const auto parts = take_apart(text, cluster);
  const bool is_tier = parts && parts->link.kind == DegradedLink::Kind::tier;
  const std::string_view out = is_tier ? "up" : "out";
  const std::string_view in = is_tier ? "down" : "in";
  if (!parts || !(parts->direction.empty() || parts->direction == out || parts->direction == in)) {
    diagnostics.error(position, fmt::format("'{}' names no link", text), std::string(forms));
    return {};
  }
  if (const std::string problem = why_not(parts->link, cluster); !problem.empty()) {
    diagnostics.error(position, fmt::format("there is no link '{}': {}", text, problem));
    return {};
  }
  std::vector<DegradedLink> links;
  for (const LinkDirection direction : {LinkDirection::out, LinkDirection::in}) {
    if (!parts->direction.empty() && parts->direction != (direction == LinkDirection::out ? out : in)) continue;
    links.push_back(parts->link);
    links.back().direction = direction;
  }
  return links;
}

bool degrade_cable(SwitchGraphSpec& graph, std::string_view name, double share) {
  const auto cable = parse(name, graph);
  if (!cable) return false;
  std::int64_t number = cable->number;
  for (std::size_t place = 0; place < graph.cables.size(); ++place) {
    const SwitchGraphSpec::Cable& here = graph.cables[place];
    if (std::minmax(here.from, here.to) != std::minmax(cable->from, cable->to)) continue;
    if (number >= here.count) {
      number -= here.count;
      continue;
    }
    SwitchGraphSpec::Cable& own = graph.cables[split(graph.cables, place, number)];
    if (own.nominal == Bandwidth{}) own.nominal = own.bandwidth;  // of several lines the last one counts
    own.bandwidth = own.nominal.scaled(share);
    return true;
  }
  return false;
}

void check_paths(const SwitchGraphSpec& graph, std::int64_t nics_per_node, const Position& position,
                 Diagnostics& diagnostics) {
  const auto nics = static_cast<std::size_t>(nics_per_node);
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
