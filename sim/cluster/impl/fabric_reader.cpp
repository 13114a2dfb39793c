#include "sim/cluster/impl/fabric_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "sim/cluster/impl/keys.h"

namespace hdpsim {
namespace {

constexpr double most_nodes = 16 * 1024 * 1024;

/// Reads switches, cables and attached nodes; then checks that all NICs of a rail can reach each other.
class GraphReader {
 public:
  GraphReader(const Value& value, const FabricExtent& extent, Diagnostics& diagnostics)
      : map_(value, "the graph", diagnostics), extent_(extent), diagnostics_(diagnostics) {
    graph_.attached.assign(static_cast<std::size_t>(extent.nodes * extent.nics_per_node), nowhere);
  }

  SwitchGraphSpec read() {
    const Value* switches = map_.require("switches");
    const Value* cables = map_.require("cables");
    const Value* nodes = map_.require("nodes");
    map_.finish();
    if (switches != nullptr) read_switches(*switches);
    if (cables != nullptr) read_cables(*cables);
    if (nodes != nullptr) read_nodes(*nodes);
    if (nodes != nullptr && diagnostics_.empty()) check_ways(graph_, extent_, nodes->position, diagnostics_);
    return std::move(graph_);
  }

 private:
  static constexpr std::size_t nowhere = std::numeric_limits<std::size_t>::max();

  void read_switches(const Value& value) {
    if (!require_map(value, "switches", "leaf0: {latency: 0.5 us}", diagnostics_)) return;
    for (const auto& entry : value.entries) {
      MapReader map(entry.value, fmt::format("the switch '{}'", entry.key), diagnostics_);
      numbers_.emplace(entry.key, graph_.switches.size());
      graph_.switches.push_back({entry.key, latency(map, "latency")});
      map.finish();
    }
  }

  std::optional<std::size_t> find_switch(std::string_view name, const Position& position) {
    const auto found = numbers_.find(name);
    if (found != numbers_.end()) return found->second;
    diagnostics_.error(position, fmt::format("there is no switch '{}'", name), "name it in switches");
    return std::nullopt;
  }

  std::optional<std::size_t> required_switch(MapReader& map, std::string_view key) {
    const auto name = map.required<std::string>(key);
    return name ? find_switch(*name, map.value().find(key)->position) : std::nullopt;
  }

  void read_cables(const Value& value) {
    if (!value.is_sequence()) {
      diagnostics_.error(value.position, fmt::format("cables must be a list, found {}", kind_name(value.kind)),
                         "write - {from: leaf0, to: spine0, bandwidth: 400 Gbit/s, count: 2}");
      return;
    }
    for (const Value& item : value.items) {
      MapReader map(item, "a cable", diagnostics_);
      const auto from = required_switch(map, "from");
      const auto to = required_switch(map, "to");
      const Bandwidth bandwidth = positive<Bandwidth>(map, "bandwidth");
      const std::int64_t count = map.optional_in<std::int64_t>("count", {1, 65536}).value_or(1);
      map.finish();
      if (!from || !to) continue;
      if (*from == *to) {
        map.error(fmt::format("a cable from '{}' to itself", graph_.switches[*from].name));
        continue;
      }
      graph_.cables.push_back({*from, *to, bandwidth, count});
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
      diagnostics_.error(value.position, fmt::format("nic {} of node {} hangs on no switch", i % nics, i / nics));
      return;
    }
  }

  void attach(const Value::Entry& entry, std::size_t which) {
    const std::string_view text = entry.key;
    const std::size_t space = std::min(text.find(' '), text.size());
    const std::string_view rest = text.substr(space);
    const auto nodes = parse_number_range(text.substr(0, space));
    NumberRange all_nics{0, extent_.nics_per_node - 1};
    const auto nics = rest.empty()                ? std::optional(all_nics)
                      : rest.starts_with(" nic ") ? parse_number_range(rest.substr(5))
                                                  : std::nullopt;
    if (!nodes || !nics) {
      diagnostics_.error(entry.position, fmt::format("'{}' names no nodes", text),
                         "write 3, 0-31, 0-31 nic 2 or 0-31 nic 0-3");
      return;
    }
    if (nodes->last >= extent_.nodes || nics->last >= extent_.nics_per_node) {
      diagnostics_.error(
          entry.position, fmt::format("there is no node {} with a nic {}", nodes->last, nics->last),
          fmt::format("the cluster has nodes 0 to {} with nics 0 to {}", extent_.nodes - 1, extent_.nics_per_node - 1));
      return;
    }
    for (std::int64_t node = nodes->first; node <= nodes->last; ++node) {
      for (std::int64_t nic = nics->first; nic <= nics->last; ++nic) {
        graph_.attached[static_cast<std::size_t>(node * extent_.nics_per_node + nic)] = which;
      }
    }
  }

  MapReader map_;
  FabricExtent extent_;
  Diagnostics& diagnostics_;
  std::map<std::string, std::size_t, std::less<>> numbers_;
  SwitchGraphSpec graph_;
};

}  // namespace

Routing read_routing(const Value& value, Diagnostics& diagnostics) {
  const std::vector<std::string> policies{"adaptive", "ecmp"};
  const auto policy_of = [&](const Value& word) {
    const auto chosen = read_choice(word, "routing", policies, diagnostics);
    return chosen.value_or(0) == 1 ? Routing::Policy::ecmp : Routing::Policy::adaptive;
  };
  if (value.is_scalar()) return {policy_of(value), 0};
  MapReader map(value, "the routing", diagnostics);
  const Value* policy = map.require("policy");
  const auto seed = map.optional_in<std::int64_t>("seed", {0, 1e15});
  map.finish();
  return {policy == nullptr ? Routing::Policy::adaptive : policy_of(*policy),
          static_cast<std::uint64_t>(seed.value_or(0))};
}

TorusSpec read_torus(const Value& value, const FabricExtent& extent, Diagnostics& diagnostics) {
  MapReader map(value, "the torus", diagnostics);
  TorusSpec torus;
  const Value* shape = map.require("shape");
  torus.bandwidth = positive<Bandwidth>(map, "bandwidth");
  torus.latency = latency(map, "latency");
  map.finish();
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
  MapReader map(value, "the dragonfly", diagnostics);
  DragonflySpec spec;
  const auto count = [&](std::string_view key) {
    return map.required_in<std::int64_t>(key, {1, most_nodes}).value_or(1);
  };
  spec.groups = count("groups");
  spec.leaves = count("leaves");
  spec.spines = count("spines");
  spec.nodes_per_leaf = count("nodes_per_leaf");
  spec.global_links = map.optional_in<std::int64_t>("global_links", {1, 65536}).value_or(1);
  spec.local = positive<Bandwidth>(map, "bandwidth");
  spec.global = map.find("global_bandwidth") != nullptr ? positive<Bandwidth>(map, "global_bandwidth") : spec.local;
  spec.latency = latency(map, "latency");
  spec.global_latency = latency(map, "global_latency");
  map.finish();
  const double nodes =
      static_cast<double>(spec.groups) * static_cast<double>(spec.leaves) * static_cast<double>(spec.nodes_per_leaf);
  if (nodes < static_cast<double>(extent.nodes)) {
    map.error(fmt::format("the dragonfly joins {:.0f} nodes, the cluster has {}", nodes, extent.nodes),
              "raise groups, leaves or nodes_per_leaf");
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
