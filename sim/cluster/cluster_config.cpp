#include "sim/cluster/cluster_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/cluster/device_facts.h"
#include "sim/cluster/impl/cable_links.h"
#include "sim/cluster/impl/fabric_reader.h"
#include "sim/cluster/impl/index_range.h"
#include "sim/cluster/impl/keys.h"
#include "sim/cluster/impl/link_selector.h"
#include "sim/cluster/impl/node_reader.h"
#include "sim/cluster/link_shares.h"
#include "sim/document/reader.h"

namespace hdpsim {
namespace {

constexpr double most_oversubscription = 1000;
constexpr double most_devices = 16 * 1024 * 1024;
constexpr double most_fan_in = 1024 * 1024;
constexpr std::size_t most_links_down = 1024;

/// Reads one cluster map. Problems go to a list of its own, so that the caller can tell whether there were any.
class ClusterReader {
 public:
  explicit ClusterReader(const Value& value) : value_(value) {}

  ClusterSpec read() {
    MapReader map(value_, "the cluster", problems_);
    spec_.name = map.optional<std::string>("name", "cluster");
    spec_.device = map.required<std::string>("device").value_or("");
    read_compute_capability(map);
    gpus_ = map.required_in<std::int64_t>("gpus", {1, most_devices});
    const Value* node = map.require("node");
    const Value* kinds = map.find("node_kinds");
    tiers_ = map.find("tiers");
    const Value* speed = map.find("speed");
    const Value* links = map.find("links");
    const Value* routing = map.find("routing");
    spec_.in_network_reduction = map.optional<bool>("in_network_reduction").value_or(false);
    const Fabrics fabrics{map.find("torus"), map.find("dragonfly"), map.find("graph")};
    const Value* notes = map.find("notes");
    map.finish();

    spec_.devices = gpus_.value_or(0);
    if (node != nullptr) read_node(*node, kinds);
    if (notes != nullptr) read_notes(*notes);
    if (tiers_ != nullptr) read_tiers();
    if (speed != nullptr) read_speed(*speed);
    if (routing != nullptr) spec_.routing = read_routing(*routing, problems_);
    check_whole_nodes();
    if (problems_.empty()) read_fabric(fabrics);
    if (node != nullptr && fabrics.any()) check_ports(*node);
    if (!fabrics.any()) check_reach();
    if (links != nullptr && problems_.empty()) read_links(*links);
    return spec_;
  }
  [[nodiscard]] const Diagnostics& problems() const { return problems_; }

 private:
  /// The fabrics that may replace tiers; at most one is present.
  struct Fabrics {
    const Value* torus;
    const Value* dragonfly;
    const Value* graph;
    [[nodiscard]] bool any() const { return torus != nullptr || dragonfly != nullptr || graph != nullptr; }
  };

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

  void read_fabric(const Fabrics& fabrics) {
    const Value* only = tiers_;
    for (const Value* other : {fabrics.torus, fabrics.dragonfly, fabrics.graph}) {
      if (other == nullptr) continue;
      if (only != nullptr) {
        problems_.error(other->position, "the nodes are joined by two fabrics",
                        "keep one of tiers, torus, dragonfly and graph");
        return;
      }
      only = other;
    }
    const FabricExtent extent{spec_.nodes(), spec_.nics_per_node};
    if (fabrics.torus != nullptr) spec_.fabric = read_torus(*fabrics.torus, extent, problems_);
    if (fabrics.dragonfly != nullptr) spec_.fabric = read_dragonfly(*fabrics.dragonfly, extent, problems_);
    if (fabrics.graph != nullptr) spec_.fabric = read_switch_graph(*fabrics.graph, extent, problems_);
  }

  void read_compute_capability(MapReader& map) {
    const auto written = map.optional_in<double>("compute_capability", {1, 100});
    spec_.compute_capability =
        written ? static_cast<int>(std::lround(10 * *written)) : compute_capability_of(spec_.device);
  }

  void read_tiers() {
    if (!require_map(*tiers_, "the tiers", "one line a tier, from the nodes up: tor: {fan_in: 64, latency: 0.8 us}",
                     problems_)) {
      return;
    }
    for (const auto& entry : tiers_->entries) read_tier(entry);
    if (spec_.tiers.size() > ClusterSpec::most_tiers) {
      problems_.error(
          tiers_->entries[ClusterSpec::most_tiers].position,
          fmt::format("there are {} tiers, at most {} are possible", spec_.tiers.size(), ClusterSpec::most_tiers));
    }
    if (!spec_.tiers.empty() && spec_.tiers.back().oversubscription > 1) {
      problems_.error(tiers_->entries.back().value.find("oversubscription")->position,
                      fmt::format("'{}' is the last tier: it has no uplinks", spec_.tiers.back().name),
                      "oversubscribe the tier below it");
    }
  }

  void read_tier(const Value::Entry& entry) {
    MapReader map(entry.value, fmt::format("the tier '{}'", entry.key), problems_);
    SwitchTier tier{.name = entry.key};
    const auto fan_in = map.required_in<std::int64_t>("fan_in", {1, most_fan_in});
    tiers_readable_ = tiers_readable_ && fan_in.has_value();
    tier.fan_in = fan_in.value_or(1);
    tier.oversubscription = map.optional_in<double>("oversubscription", {1, most_oversubscription}).value_or(1);
    tier.latency = hdpsim::latency(map);
    tier.uplinks = map.optional_in<std::int64_t>("uplinks", {1, most_fan_in});
    map.finish();
    spec_.tiers.push_back(std::move(tier));
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
    for (std::int64_t gpu = selector->first; gpu <= last; gpu += selector->step) {
      spec_.speed.insert_or_assign(gpu, *factor);
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
      check_ways(*graph, {spec_.nodes(), spec_.nics_per_node}, value.position, problems_);
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
    const std::int64_t fewer = *gpus_ - *gpus_ % *node_gpus_;
    const std::string counts =
        fewer == 0 ? fmt::format("{}", *node_gpus_) : fmt::format("{} or {}", fewer, fewer + *node_gpus_);
    problems_.error(value_.find("gpus")->position,
                    fmt::format("{} gpus are not a whole number of nodes of {}", *gpus_, *node_gpus_),
                    fmt::format("write {}, or change node.gpus", counts));
  }

  void check_reach() {
    if (!gpus_ || !node_gpus_ || !tiers_readable_ || *gpus_ <= *node_gpus_) return;
    auto reach = static_cast<double>(*node_gpus_);
    for (const SwitchTier& tier : spec_.tiers) reach *= static_cast<double>(tier.fan_in);
    if (reach > static_cast<double>(INT64_MAX / 2)) {
      problems_.error(tiers_->position, fmt::format("the tiers join {:.3g} gpus, too many to count", reach));
    }
    if (reach >= static_cast<double>(*gpus_)) return;
    problems_.error(value_.find("gpus")->position,
                    fmt::format("the tiers join at most {:.0f} gpus, the cluster has {}", reach, *gpus_),
                    spec_.tiers.empty() ? "add a tier of switches"
                                        : fmt::format("raise tiers.{}.fan_in or add a tier", spec_.tiers.back().name));
  }

  const Value& value_;
  const Value* tiers_ = nullptr;
  std::optional<std::int64_t> gpus_;
  std::optional<std::int64_t> node_gpus_;
  bool tiers_readable_ = true;
  ClusterSpec spec_;
  Diagnostics problems_;
};

}  // namespace

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
