#include "sim/cluster/impl/fabric_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "sim/base/quantity_limits.h"
#include "sim/cluster/impl/link_selector.h"
#include "sim/cluster/node_list.h"

namespace hdpsim {
namespace {

constexpr auto most_nodes = static_cast<double>(limits::most_devices);
constexpr double most_links = 1e8;  // of a dragonfly; each has a rate and a name
constexpr double most_fan_in = 1024 * 1024;
constexpr double most_oversubscription = 1000;
constexpr Range cables_range{1, 65536};

const KeyTable<SwitchTier>& tier_keys() {
  static const auto made = [] {
    KeyTable<SwitchTier> keys("the tier");
    keys.count("fan_in", {1, most_fan_in}, at(&SwitchTier::fan_in),
               "units of the tier below, or nodes, that one unit joins", {.required = true});
    keys.number("oversubscription", {1, most_oversubscription}, at(&SwitchTier::oversubscription),
                "the uplinks of a unit carry 1 / this of what its NICs can send; the last tier has none");
    keys.quantity("latency", limits::latency, at(&SwitchTier::latency),
                  "one way, for messages that turn around in this tier");
    keys.count("uplinks", {1, most_fan_in}, at(&SwitchTier::uplinks),
               "uplinks of a full unit and rail, among which `ecmp` chooses",
               {.otherwise = "as many as carry the rate of its NICs"});
    return keys;
  }();
  return made;
}

/// The torus as its map states it.
struct TorusText {
  TorusSpec torus;
  const Value* shape = nullptr;
};

const KeyTable<TorusText>& torus_keys() {
  static const auto made = [] {
    KeyTable<TorusText> keys("the torus");
    keys.kept({"shape",
               list_shape(count_shape({1, most_nodes})),
               "",
               "nodes per dimension: `[8, 8, 16]`",
               {.required = true}},
              &TorusText::shape);
    keys.quantity("bandwidth", limits::bandwidth, at(&TorusText::torus, &TorusSpec::bandwidth),
                  "per link and direction; each rail has links of its own", {.required = true});
    keys.quantity("latency", limits::latency, at(&TorusText::torus, &TorusSpec::latency), "per hop");
    return keys;
  }();
  return made;
}

const KeyTable<DragonflySpec>& dragonfly_keys() {
  static const auto made = [] {
    KeyTable<DragonflySpec> keys("the dragonfly");
    const auto count = [&](const char* name, std::int64_t DragonflySpec::*member, const char* sentence) {
      keys.count(name, {1, most_nodes}, at(member), sentence, {.required = true});
    };
    count("groups", &DragonflySpec::groups, "groups of switches");
    count("leaves", &DragonflySpec::leaves, "leaf switches per group");
    count("spines", &DragonflySpec::spines, "spine switches per group, each joined to every leaf of it");
    count("nodes_per_leaf", &DragonflySpec::nodes_per_leaf, "nodes are numbered leaf by leaf, group by group");
    keys.count("global_links", cables_range, at(&DragonflySpec::global_links),
               "links between every two groups, spread evenly over the spines");
    keys.quantity("bandwidth", limits::bandwidth, at(&DragonflySpec::local),
                  "per link between a leaf and a spine, and direction", {.required = true});
    keys.quantity("global_bandwidth", limits::bandwidth, at(&DragonflySpec::global),
                  "per link between two groups, and direction", {.otherwise = "`bandwidth`"});
    keys.quantity("latency", limits::latency, at(&DragonflySpec::latency), "per switch");
    keys.quantity("global_latency", limits::latency, at(&DragonflySpec::global_latency),
                  "added by a link between groups");
    return keys;
  }();
  return made;
}

const KeyTable<SwitchGraphSpec::Switch>& switch_keys() {
  static const auto made = [] {
    KeyTable<SwitchGraphSpec::Switch> keys("the switch");
    keys.quantity("latency", limits::latency, at(&SwitchGraphSpec::Switch::latency), "added to what crosses it");
    return keys;
  }();
  return made;
}

/// A cable as its map states it.
struct CableText {
  SwitchGraphSpec::Cable cable;
  const Value* from = nullptr;
  const Value* to = nullptr;
};

const KeyTable<CableText>& cable_keys() {
  static const auto made = [] {
    KeyTable<CableText> keys("a cable");
    const KeyShape name = shape_of(KeyShape::Kind::text);
    keys.kept({"from", name, "", "a switch", {.required = true}}, &CableText::from);
    keys.kept({"to", name, "", "the switch at its other end", {.required = true}}, &CableText::to);
    keys.quantity("bandwidth", limits::bandwidth, at(&CableText::cable, &SwitchGraphSpec::Cable::bandwidth),
                  "per direction, of each of the cables", {.required = true});
    keys.count("count", cables_range, at(&CableText::cable, &SwitchGraphSpec::Cable::count),
               "parallel cables between the two", {.unit = "cables"});
    return keys;
  }();
  return made;
}

/// The maps of a graph, whose parts name each other.
struct GraphText {
  const Value* switches = nullptr;
  const Value* cables = nullptr;
  const Value* nodes = nullptr;
};

const KeyTable<GraphText>& graph_keys() {
  static const auto made = [] {
    KeyTable<GraphText> keys("the graph");
    const KeyShape one = either_shape({shape_of(KeyShape::Kind::nothing), map_shape(switch_keys().texts())});
    keys.kept({"switches", dictionary_shape(one), "", "the switches by name", {.required = true}},
              &GraphText::switches);
    keys.kept(
        {"cables", list_shape(map_shape(cable_keys().texts())), "", "what joins the switches", {.required = true}},
        &GraphText::cables);
    keys.kept({"nodes",
               dictionary_shape(shape_of(KeyShape::Kind::text)),
               "",
               "which NICs are attached to which switch: `0-15: leaf0`, `16-31 nic 0-3: leaf1`; later lines win",
               {.required = true}},
              &GraphText::nodes);
    return keys;
  }();
  return made;
}

const KeyTable<Routing>& routing_keys() {
  static const auto made = [] {
    KeyTable<Routing> keys("the routing");
    keys.word("policy", "routing", {{"adaptive", Routing::Policy::adaptive}, {"ecmp", Routing::Policy::ecmp}},
              at(&Routing::policy), "packet by packet, or flow by flow", {.required = true});
    keys.count("seed", {0, 1e15}, at(&Routing::seed), "seed of the hash by which `ecmp` chooses");
    return keys;
  }();
  return made;
}

/// Reads switches, cables and attached nodes; then checks that all NICs of a rail are connected.
class GraphReader {
 public:
  GraphReader(const Value& value, const FabricExtent& extent, Diagnostics& diagnostics)
      : extent_(extent), diagnostics_(diagnostics) {
    (void)graph_keys().read(value, text_, diagnostics);
    graph_.attached.assign(static_cast<std::size_t>(extent.nodes * extent.nics_per_node), nowhere);
  }

  SwitchGraphSpec read() {
    if (text_.switches != nullptr) read_switches(*text_.switches);
    if (text_.cables != nullptr) read_cables(*text_.cables);
    if (text_.nodes != nullptr) read_nodes(*text_.nodes);
    if (text_.nodes != nullptr && diagnostics_.empty()) {
      check_paths(graph_, extent_.nics_per_node, text_.nodes->position, diagnostics_);
    }
    return std::move(graph_);
  }

 private:
  static constexpr std::size_t nowhere = std::numeric_limits<std::size_t>::max();

  void read_switches(const Value& value) {
    if (!require_map(value, "switches", "leaf0: {latency: 0.5 us}", diagnostics_)) return;
    for (const auto& entry : value.entries) {
      numbers_.emplace(entry.key, graph_.switches.size());
      graph_.switches.push_back({entry.key, {}});
      if (entry.value.is_null()) continue;
      (void)switch_keys().read(entry.value, graph_.switches.back(), diagnostics_,
                               fmt::format("the switch '{}'", entry.key));
    }
  }

  std::optional<std::size_t> find_switch(std::string_view name, const Position& position) {
    const auto found = numbers_.find(name);
    if (found != numbers_.end()) return found->second;
    diagnostics_.error(position, fmt::format("there is no switch '{}'", name), "name it in switches");
    return std::nullopt;
  }

  std::optional<std::size_t> find_switch(const Value* value) {
    if (value == nullptr) return std::nullopt;
    const auto name = hdpsim::read<std::string>(*value, diagnostics_);
    return name ? find_switch(*name, value->position) : std::nullopt;
  }

  void read_cables(const Value& value) {
    if (!value.is_sequence()) {
      diagnostics_.error(value.position, fmt::format("cables must be a list, found {}", kind_name(value.kind)),
                         "write - {from: leaf0, to: spine0, bandwidth: 400 Gbit/s, count: 2}");
      return;
    }
    for (const Value& item : value.items) {
      CableText text;
      (void)cable_keys().read(item, text, diagnostics_);
      const auto from = find_switch(text.from);
      const auto to = find_switch(text.to);
      if (!from || !to) continue;
      if (*from == *to) {
        diagnostics_.error(item.position, fmt::format("a cable from '{}' to itself", graph_.switches[*from].name));
        continue;
      }
      graph_.cables.push_back({*from, *to, text.cable.bandwidth, text.cable.count});
    }
  }

  // Reads entries such as `0-3 nic 0: leaf0` and `4-7: leaf1` (all NICs).
  void read_nodes(const Value& value) {
    if (!require_map(value, "nodes", "0-3 nic 0: leaf0", diagnostics_)) return;
    for (const auto& entry : value.entries) {
      const auto name = hdpsim::read<std::string>(entry.value, diagnostics_);
      const auto which = name ? find_switch(*name, entry.value.position) : std::nullopt;
      attach(entry, which.value_or(0));
    }
    for (std::size_t i = 0; i < graph_.attached.size() && diagnostics_.empty(); ++i) {
      if (graph_.attached[i] != nowhere) continue;
      const auto nics = static_cast<std::size_t>(extent_.nics_per_node);
      diagnostics_.error(value.position, fmt::format("nic {} of node {} is attached to no switch", i % nics, i / nics));
      return;
    }
  }

  void attach(const Value::Entry& entry, std::size_t which) {
    const std::string_view text = entry.key;
    const std::size_t space = std::min(text.find(' '), text.size());
    const std::string_view rest = text.substr(space);
    const auto nodes = parse_closed_range(text.substr(0, space));
    IndexRange all_nics{.first = 0, .last = extent_.nics_per_node - 1};
    const auto nics = rest.empty()                ? std::optional(all_nics)
                      : rest.starts_with(" nic ") ? parse_closed_range(rest.substr(5))
                                                  : std::nullopt;
    if (!nodes || !nics) {
      diagnostics_.error(entry.position, fmt::format("'{}' names no nodes", text),
                         "write 3, 0-31, 0-31 nic 2 or 0-31 nic 0-3");
      return;
    }
    if (nodes->last >= extent_.nodes || nics->last >= extent_.nics_per_node) {
      diagnostics_.error(
          entry.position, fmt::format("there is no node {} with a nic {}", *nodes->last, *nics->last),
          fmt::format("the cluster has nodes 0 to {} with nics 0 to {}", extent_.nodes - 1, extent_.nics_per_node - 1));
      return;
    }
    for (std::int64_t node = nodes->first; node <= nodes->last; ++node) {
      for (std::int64_t nic = nics->first; nic <= nics->last; ++nic) {
        graph_.attached[static_cast<std::size_t>(node * extent_.nics_per_node + nic)] = which;
      }
    }
  }

  GraphText text_;
  FabricExtent extent_;
  Diagnostics& diagnostics_;
  std::map<std::string, std::size_t, std::less<>> numbers_;
  SwitchGraphSpec graph_;
};

}  // namespace

bool require_map(const Value& value, std::string_view what, std::string_view example, Diagnostics& diagnostics) {
  if (value.is_map()) return true;
  diagnostics.error(value.position, fmt::format("{} must be a map, found {}", what, kind_name(value.kind)),
                    fmt::format("write {}", example));
  return false;
}

KeyShape tiers_shape() {
  return dictionary_shape(map_shape(tier_keys().texts()));
}

KeyShape torus_shape() {
  return map_shape(torus_keys().texts());
}

KeyShape dragonfly_shape() {
  return map_shape(dragonfly_keys().texts());
}

KeyShape graph_shape() {
  return map_shape(graph_keys().texts());
}

KeyShape routing_shape() {
  return either_shape({routing_keys().texts().front().shape, map_shape(routing_keys().texts())});
}

SwitchTier read_tier(const Value::Entry& entry, bool& is_readable, Diagnostics& diagnostics) {
  SwitchTier tier{.name = entry.key};
  const std::string what = fmt::format("the tier '{}'", entry.key);
  is_readable = tier_keys().read(entry.value, tier, diagnostics, what).is_right("fan_in") && is_readable;
  return tier;
}

Routing read_routing(const Value& value, Diagnostics& diagnostics) {
  Routing routing;
  if (value.is_scalar()) {
    routing_keys().read_key("policy", value, routing, diagnostics);
  } else {
    (void)routing_keys().read(value, routing, diagnostics);
  }
  return routing;
}

TorusSpec read_torus(const Value& value, const FabricExtent& extent, Diagnostics& diagnostics) {
  TorusText text;
  (void)torus_keys().read(value, text, diagnostics);
  TorusSpec torus = std::move(text.torus);
  const Value* shape = text.shape;
  if (shape == nullptr) return torus;
  if (!shape->is_sequence()) {
    diagnostics.error(shape->position, fmt::format("the shape must be a list, found {}", kind_name(shape->kind)),
                      "write nodes per dimension: [8, 8, 16]");
    return torus;
  }
  double nodes = 1;
  std::int64_t hops = 0;
  for (const Value& item : shape->items) {
    const auto length = read_in<std::int64_t>(item, "a dimension", {1, most_nodes}, diagnostics);
    if (!length) return torus;
    torus.shape.push_back(*length);
    nodes *= static_cast<double>(torus.shape.back());
    hops += torus.shape.back() / 2;
  }
  if (nodes != static_cast<double>(extent.nodes)) {
    diagnostics.error(shape->position,
                      fmt::format("the shape holds {:.0f} nodes, the cluster has {}", nodes, extent.nodes));
  } else if (hops > most_fabric_hops) {
    diagnostics.error(
        shape->position,
        fmt::format("ways over this torus have up to {} links, at most {} are possible", hops, most_fabric_hops),
        "add a dimension");
  }
  return torus;
}

DragonflySpec read_dragonfly(const Value& value, const FabricExtent& extent, Diagnostics& diagnostics) {
  DragonflySpec spec;
  (void)dragonfly_keys().read(value, spec, diagnostics);
  if (spec.global == Bandwidth{}) spec.global = spec.local;
  const double nodes =
      static_cast<double>(spec.groups) * static_cast<double>(spec.leaves) * static_cast<double>(spec.nodes_per_leaf);
  if (nodes < static_cast<double>(extent.nodes)) {
    diagnostics.error(value.position,
                      fmt::format("the dragonfly joins {:.0f} nodes, the cluster has {}", nodes, extent.nodes),
                      "raise groups, leaves or nodes_per_leaf");
  }
  const auto groups = static_cast<double>(spec.groups);
  const double pairs_of_switches = groups * (groups - 1) / 2 * static_cast<double>(spec.global_links) +
                                   groups * static_cast<double>(spec.leaves) * static_cast<double>(spec.spines);
  if (const double links = 2 * pairs_of_switches * static_cast<double>(extent.nics_per_node); links > most_links) {
    diagnostics.error(value.position,
                      fmt::format("the dragonfly has {:.3g} links, at most {:.0e} are possible", links, most_links),
                      "lower groups, leaves, spines or global_links");
  }
  return spec;
}

SwitchGraphSpec read_switch_graph(const Value& value, const FabricExtent& extent, Diagnostics& diagnostics) {
  Diagnostics problems;
  SwitchGraphSpec graph = GraphReader(value, extent, problems).read();
  diagnostics.append(problems);
  return graph;
}

}  // namespace hdpsim
