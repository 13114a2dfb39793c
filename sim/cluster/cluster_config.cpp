#include "sim/cluster/cluster_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/quantity_limits.h"
#include "sim/cluster/device_facts.h"
#include "sim/cluster/impl/fabric_reader.h"
#include "sim/cluster/impl/link_selector.h"
#include "sim/cluster/impl/node_reader.h"
#include "sim/cluster/link_shares.h"
#include "sim/cluster/node_list.h"
#include "sim/document/key_table.h"

namespace hdpsim {
namespace {

constexpr auto most_devices = static_cast<double>(limits::most_devices);
constexpr std::size_t most_links_down = 1024;

/// A cluster as its map states it. What needs other keys first is read later.
struct ClusterText {
  ClusterSpec spec;
  std::optional<double> compute_capability;
  const Value* node = nullptr;
  const Value* kinds = nullptr;
  const Value* tiers = nullptr;
  const Value* torus = nullptr;
  const Value* dragonfly = nullptr;
  const Value* graph = nullptr;
  const Value* speed = nullptr;
  const Value* links = nullptr;
  const Value* notes = nullptr;
};

using Keys = KeyTable<ClusterText>;

void add_devices(Keys& keys) {
  keys.text("name", at(&ClusterText::spec, &ClusterSpec::name), "for reports", {.otherwise = "`cluster`"});
  keys.text("device", at(&ClusterText::spec, &ClusterSpec::device), "the word that profiles use: `A100-80GB`",
            {.required = true});
  keys.number("compute_capability", {1, 100}, at(&ClusterText::compute_capability),
              "of a device that `configs/devices.yaml` does not know", {.otherwise = "the device's"});
  keys.count("gpus", {1, most_devices}, at(&ClusterText::spec, &ClusterSpec::devices),
             "GPUs of the cluster: a whole number of nodes, or of their trays", {.unit = "GPUs", .required = true});
  keys.kept({"node", map_shape(node_keys()), "", "what every node has", {.required = true}}, &ClusterText::node);
  keys.kept({"node_kinds",
             dictionary_shape(map_shape(node_kind_keys())),
             "",
             "by name, nodes that differ from `node` in the keys that stand here",
             {.otherwise = "all are alike"}},
            &ClusterText::kinds);
  const KeyShape factor = number_shape({limits::least_speed, limits::most_speed});
  keys.kept({"speed",
             dictionary_shape(factor),
             "",
             "GPUs that compute slower or faster than nominal: `17: 0.8`, `32-39: 0.9`, `every 64: 0.95`, `every 64 "
             "from 3: 0.95`; later lines win",
             {.otherwise = "1"}},
            &ClusterText::speed);
}

void add_fabrics(Keys& keys) {
  constexpr std::string_view instead = "`tiers`";
  keys.kept({"tiers",
             tiers_shape(),
             "",
             "by name from the nodes up, at most four: levels of switches",
             {.otherwise = "one node needs none"}},
            &ClusterText::tiers);
  keys.flag(
      "rails", at(&ClusterText::spec, &ClusterSpec::has_rails),
      "of `tiers`: NIC i of every node is on switches of its own (rail-optimized); false: all NICs of a node are on "
      "the same switches (a fat tree)");
  keys.kept({"torus", torus_shape(), "", "nodes on a torus, a torus per rail", {.otherwise = instead}},
            &ClusterText::torus);
  keys.kept(
      {"dragonfly", dragonfly_shape(), "", "groups of leaf and spine switches (Dragonfly+)", {.otherwise = instead}},
      &ClusterText::dragonfly);
  keys.kept({"graph", graph_shape(), "", "switches and cables one by one", {.otherwise = instead}},
            &ClusterText::graph);
  keys.flag("in_network_reduction", at(&ClusterText::spec, &ClusterSpec::in_network_reduction),
            "the switches between nodes add up (NVIDIA SHARP)");
  keys.add({"routing",
            routing_shape(),
            "adaptive",
            "how switches choose among equal paths: packet by packet, or flow by flow by a hash; also `{policy: ecmp, "
            "seed: 7}`",
            {}},
           [](const Value& value, ClusterText& text, Diagnostics& diagnostics) {
             text.spec.routing = read_routing(value, diagnostics);
           });
  keys.kept({"links",
             dictionary_shape(number_shape({0, 1})),
             "",
             "links that carry a share of their rate, by the names in links.csv: `node 3 nic 2: 0.5`; 0 is down, "
             "otherwise from 0.001 on; later lines win",
             {.otherwise = "1"}},
            &ClusterText::links);
  keys.kept({"notes",
             list_shape(shape_of(KeyShape::Kind::text)),
             "",
             "lines that `hdpsim check` shows",
             {.otherwise = "none"}},
            &ClusterText::notes);
}

const Keys& cluster_table() {
  static const Keys table = [] {
    Keys keys("the cluster");
    add_devices(keys);
    add_fabrics(keys);
    return keys;
  }();
  return table;
}

/// Reads one cluster map. Problems go to a list of its own, so that the caller knows whether there were any.
class ClusterReader {
 public:
  explicit ClusterReader(const Value& value) : value_(value) { text_.spec.name = "cluster"; }

  ClusterSpec read() {
    const KeyReading reading = cluster_table().read(value_, text_, problems_);
    if (reading.is_right("gpus")) gpus_ = spec_.devices;
    find_compute_capability();
    if (text_.node != nullptr) read_node(*text_.node, text_.kinds);
    if (text_.notes != nullptr) read_notes(*text_.notes);
    if (text_.tiers != nullptr) read_tiers(*text_.tiers);
    if (text_.speed != nullptr) read_speed(*text_.speed);
    check_whole_nodes();
    if (problems_.empty()) read_fabric();
    const bool is_other = text_.torus != nullptr || text_.dragonfly != nullptr || text_.graph != nullptr;
    if (text_.node != nullptr && is_other) check_ports(*text_.node);
    if (!is_other) check_reach();
    if (text_.links != nullptr && problems_.empty()) read_links(*text_.links);
    return std::move(spec_);
  }
  [[nodiscard]] const Diagnostics& problems() const { return problems_; }

 private:
  void read_node(const Value& node, const Value* kinds) {
    NodeReader reader(spec_, gpus_, problems_);
    reader.read_node(node);
    node_gpus_ = reader.gpus_per_node();
    if (kinds != nullptr) reader.read_kinds(*kinds);
  }

  void read_notes(const Value& value) {
    if (!value.is_sequence()) {
      problems_.error(value.position, fmt::format("notes must be a list, found {}", kind_name(value.kind)));
      return;
    }
    for (const Value& item : value.items) {
      spec_.notes.push_back(hdpsim::read<std::string>(item, problems_).value_or(""));
    }
  }

  void read_fabric() {
    const Value* only = text_.tiers;
    for (const Value* other : {text_.torus, text_.dragonfly, text_.graph}) {
      if (other == nullptr) continue;
      if (only != nullptr) {
        problems_.error(other->position, "the nodes are joined by two fabrics",
                        "keep one of tiers, torus, dragonfly and graph");
        return;
      }
      only = other;
    }
    if (!spec_.has_rails && only != nullptr && only != text_.tiers) {
      problems_.error(value_.find("rails")->position, "'rails' says how tiers are wired, and the nodes have no tiers",
                      "remove it: this fabric says by itself which NICs it joins");
      return;
    }
    const FabricExtent extent{spec_.nodes(), spec_.nics_per_node};
    if (text_.torus != nullptr) spec_.fabric = read_torus(*text_.torus, extent, problems_);
    if (text_.dragonfly != nullptr) spec_.fabric = read_dragonfly(*text_.dragonfly, extent, problems_);
    if (text_.graph != nullptr) spec_.fabric = read_switch_graph(*text_.graph, extent, problems_);
  }

  void find_compute_capability() {
    const auto& written = text_.compute_capability;
    spec_.compute_capability =
        written ? static_cast<int>(std::lround(10 * *written)) : compute_capability_of(spec_.device);
  }

  void read_tiers(const Value& tiers) {
    if (!require_map(tiers, "the tiers", "one line a tier, from the nodes up: tor: {fan_in: 64, latency: 0.8 us}",
                     problems_)) {
      return;
    }
    for (const auto& entry : tiers.entries) spec_.tiers.push_back(read_tier(entry, tiers_readable_, problems_));
    if (spec_.tiers.size() > ClusterSpec::most_tiers) {
      problems_.error(
          tiers.entries[ClusterSpec::most_tiers].position,
          fmt::format("there are {} tiers, at most {} are possible", spec_.tiers.size(), ClusterSpec::most_tiers));
    }
    if (!spec_.tiers.empty() && spec_.tiers.back().oversubscription > 1) {
      problems_.error(tiers.entries.back().value.find("oversubscription")->position,
                      fmt::format("'{}' is the last tier: it has no uplinks", spec_.tiers.back().name),
                      "oversubscribe the tier below it");
    }
  }

  void read_speed(const Value& value) {
    if (!require_map(value, "speed", "gpu: factor, for example 17: 0.8", problems_)) return;
    for (const auto& entry : value.entries) read_speed_entry(entry);
  }

  void read_speed_entry(const Value::Entry& entry) {
    const auto factor = read_in<double>(entry.value, "a speed", {limits::least_speed, limits::most_speed}, problems_,
                                        "1 is nominal, 0.8 takes a quarter longer; leave a gpu out of the job by "
                                        "lowering 'gpus'");
    const auto selector = parse_index_range(entry.key);
    if (!selector) {
      problems_.error(entry.position, fmt::format("'{}' names no gpus", entry.key),
                      "write 17, 32-39, every 64 or every 64 from 3");
      return;
    }
    if (!gpus_) return;
    const std::int64_t last = selector->last.value_or(*gpus_ - 1);
    if (selector->first >= *gpus_ || last >= *gpus_) {
      problems_.error(entry.position, fmt::format("there is no gpu {}", std::max(selector->first, last)),
                      fmt::format("the cluster has gpus 0 to {}", *gpus_ - 1));
      return;
    }
    if (!factor) return;
    for (std::int64_t gpu = selector->first;; gpu += selector->step) {
      spec_.speed.insert_or_assign(gpu, *factor);
      if (last - gpu < selector->step) break;
    }
  }

  void read_links(const Value& value) {
    if (!require_map(value, "links", "link: share of its rate, for example node 3 nic 2: 0.5", problems_)) return;
    for (const auto& entry : value.entries) read_link(entry);
    const auto is_down = [](const DegradedLink& link) { return link.factor == 0; };
    const auto down = std::count_if(spec_.degraded.begin(), spec_.degraded.end(), is_down);
    if (static_cast<std::size_t>(down) > most_links_down) {
      problems_.error(value.position, fmt::format("{} links are down, at most {} are possible", down, most_links_down),
                      "leave broken nodes out of the job by lowering 'gpus'");
      return;
    }
    if (!problems_.empty()) return;
    if (const auto* graph = std::get_if<SwitchGraphSpec>(&spec_.fabric)) {
      check_paths(*graph, spec_.nics_per_node, value.position, problems_);
    }
    if (const auto cut_off = find_cut_off(spec_)) {
      problems_.error(
          value.position,
          fmt::format("node {} has no way to node {}: on no rail is a plane up at both", cut_off->from, cut_off->to),
          "leave a node out of the job by lowering 'gpus'");
    }
  }

  void read_link(const Value::Entry& entry) {
    const auto factor = hdpsim::read<double>(entry.value, problems_);
    if (!factor) return;
    if (*factor != 0 && !(*factor >= limits::least_link_share && *factor <= 1)) {
      problems_.error(
          entry.value.position,
          fmt::format("a share of {}, it must be 0 or from {} to 1", entry.value.text, limits::least_link_share),
          "0.5 carries half, 0 is down");
      return;
    }
    auto* graph = std::get_if<SwitchGraphSpec>(&spec_.fabric);
    if (graph != nullptr && degrade_cable(*graph, entry.key, *factor)) return;
    for (DegradedLink link : parse_link_selector(entry.key, spec_, entry.position, problems_)) {
      if (factor == 0 && link.kind == DegradedLink::Kind::nvlink) {
        problems_.error(entry.value.position, "a gpu whose NVLink is down has no way to the others of its node",
                        "write what is left of it, above 0");
        return;
      }
      link.factor = *factor;
      spec_.degraded.push_back(link);
    }
  }

  // A fabric other than tiers attaches every NIC itself, to one switch.
  void check_ports(const Value& node) {
    if (spec_.ports_per_nic == 1) return;
    problems_.error(node.find("nics")->position,
                    "NICs of several ports need tiers: the planes of other fabrics are unknown",
                    "remove ports, or give each port a NIC of its own");
  }

  void check_whole_nodes() {
    if (!gpus_ || !node_gpus_ || *gpus_ % *node_gpus_ == 0) return;
    const auto is_possible = [&](std::int64_t gpus) { return devices_of_each_node(spec_, gpus).has_value(); };
    std::int64_t fewer = *gpus_ - 1;
    while (fewer > 0 && !is_possible(fewer)) --fewer;
    std::int64_t more = *gpus_ + 1;
    while (!is_possible(more)) ++more;
    const std::string parts = spec_.devices_per_tray ? fmt::format(", in trays of {}", *spec_.devices_per_tray) : "";
    problems_.error(value_.find("gpus")->position,
                    fmt::format("{} gpus are not a whole number of nodes of {}{}", *gpus_, *node_gpus_, parts),
                    fmt::format("write {}, or change node.gpus",
                                fewer == 0 ? fmt::format("{}", more) : fmt::format("{} or {}", fewer, more)));
  }

  void check_reach() {
    if (!gpus_ || !node_gpus_ || !tiers_readable_ || *gpus_ <= *node_gpus_) return;
    auto joined = static_cast<double>(*node_gpus_);
    for (const SwitchTier& tier : spec_.tiers) joined *= static_cast<double>(tier.fan_in);
    if (joined > static_cast<double>(INT64_MAX / 2)) {
      problems_.error(text_.tiers->position, fmt::format("the tiers join {:.3g} gpus, too many to count", joined));
    }
    if (joined >= static_cast<double>(*gpus_)) return;
    problems_.error(value_.find("gpus")->position,
                    fmt::format("the tiers join at most {:.0f} gpus, the cluster has {}", joined, *gpus_),
                    spec_.tiers.empty() ? "add a tier of switches"
                                        : fmt::format("raise tiers.{}.fan_in or add a tier", spec_.tiers.back().name));
  }

  const Value& value_;
  ClusterText text_;
  ClusterSpec& spec_ = text_.spec;
  std::optional<std::int64_t> gpus_;
  std::optional<std::int64_t> node_gpus_;
  bool tiers_readable_ = true;
  Diagnostics problems_;
};

}  // namespace

const std::vector<KeyText>& cluster_keys() {
  static const auto all = [] {
    const KeyShape text = shape_of(KeyShape::Kind::text);
    std::vector<KeyText> keys = {
        {"preset",
         text,
         "",
         "a file of `configs/clusters`, without `.yaml`; all other keys override it at any depth",
         {.otherwise = "the cluster is written out"}},
        {"file", text, "", "a cluster file instead of a preset", {.otherwise = "none"}}};
    for (const KeyText& key : cluster_table().texts()) {
      keys.push_back(key);
      if (key.name == "graph") {
        keys.back().shape.keys.push_back({"file",
                                          text,
                                          "",
                                          "the output of `ibnetdiscover`, or Slurm's topology.conf, in place of the "
                                          "keys above",
                                          {.otherwise = "none"}});
      }
      if (key.name != "node") continue;
      keys.back().shape.keys.push_back(
          {"nccl_topology",
           text,
           "",
           "a file that NCCL wrote (`NCCL_TOPO_DUMP_FILE`) or the output of `nvidia-smi topo -m`, which state `gpus`, "
           "`nvlink`, `nics` and `pcie`; other keys of `node` win",
           {.otherwise = "none"}});
    }
    return keys;
  }();
  return all;
}

std::optional<ClusterSpec> read_cluster(const Value& value, Diagnostics& diagnostics) {
  ClusterReader reader(value);
  ClusterSpec spec = reader.read();
  diagnostics.append(reader.problems());
  if (!reader.problems().empty()) return std::nullopt;
  return spec;
}

std::optional<ClusterSpec> read_cluster(const Value& value, const std::filesystem::path& preset_directory,
                                        Diagnostics& diagnostics) {
  Diagnostics found;
  const Value full = expand_cluster(value, preset_directory, found);
  if (full.is_null() && found.empty()) found.error(value.position, "the cluster must be a map, found nothing");
  diagnostics.append(found);
  if (full.is_null()) return std::nullopt;
  return read_cluster(full, diagnostics);
}

}  // namespace hdpsim
