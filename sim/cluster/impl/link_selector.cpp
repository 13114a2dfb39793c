#include "sim/cluster/impl/link_selector.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>

namespace hdpsim {
namespace {

constexpr std::string_view forms =
    "write node 3 nic 2, node 3 gpu 1 nvlink out or TIER 1 rail 0 up, as links.csv names them";

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

/// A selector taken apart, before anybody knows whether there is such a link.
struct Words {
  DegradedLink link;
  std::string_view direction;  ///< Empty: both.
};

std::optional<Words> take_apart(std::string_view text, const ClusterSpec& cluster) {
  const std::vector<std::string_view> words = words_of(text);
  if (words.size() < 4) return std::nullopt;
  const auto unit = number_of(words[1]);
  const auto index = number_of(words[3]);
  if (!unit || !index) return std::nullopt;
  Words parts;
  parts.link.unit = *unit;
  parts.link.index = *index;
  std::size_t used = 4;
  if (words[0] == "node" && words[2] == "nic") {
    parts.link.kind = DegradedLink::Kind::nic;
  } else if (words[0] == "node" && words[2] == "gpu" && words.size() > 4 && words[4] == "nvlink") {
    parts.link.kind = DegradedLink::Kind::nvlink;
    used = 5;
  } else if (words[2] == "rail") {
    const auto tier = std::find_if(cluster.tiers.begin(), cluster.tiers.end(),
                                   [&](const SwitchTier& known) { return known.name == words[0]; });
    if (tier == cluster.tiers.end()) return std::nullopt;
    parts.link.kind = DegradedLink::Kind::tier;
    parts.link.tier = static_cast<std::size_t>(tier - cluster.tiers.begin());
  } else {
    return std::nullopt;
  }
  if (words.size() > used) parts.direction = words[used];
  return words.size() <= used + 1 ? std::optional(parts) : std::nullopt;
}

// Nothing if there is such a link, else what is wrong.
std::string why_not(const DegradedLink& link, const ClusterSpec& cluster) {
  const std::int64_t nodes = cluster.nodes();
  std::int64_t units = nodes;
  std::int64_t indices = cluster.nics_per_node;
  if (link.kind == DegradedLink::Kind::nvlink) indices = cluster.devices_per_node;
  if (link.kind == DegradedLink::Kind::tier) {
    const std::int64_t nodes_per_unit = cluster.nodes_per_unit(link.tier);
    units = (nodes + nodes_per_unit - 1) / nodes_per_unit;
    if (units == 1) {
      return fmt::format("tier '{}' joins all nodes: it has no uplinks", cluster.tiers[link.tier].name);
    }
  }
  if (link.kind == DegradedLink::Kind::nvlink ? cluster.devices_per_node == 1 : nodes == 1) {
    return "the cluster has no such links";
  }
  if (link.unit >= units) return fmt::format("{} is too high, they are 0 to {}", link.unit, units - 1);
  if (link.index >= indices) return fmt::format("{} is too high, they are 0 to {}", link.index, indices - 1);
  return "";
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

}  // namespace hdpsim
