#include "sim/cluster/cluster_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/cluster/device_facts.h"
#include "sim/cluster/impl/fabric_reader.h"
#include "sim/cluster/impl/link_selector.h"
#include "sim/cluster/impl/speed_selector.h"
#include "sim/document/reader.h"

namespace hdpsim {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double most_devices = 16 * 1024 * 1024;
constexpr double most_fan_in = 1024 * 1024;
constexpr auto highest_bandwidth = Bandwidth::bytes_per_second(1'000'000'000'000'000);

/// Reads one cluster map. Problems go to its own list, so that the caller can tell whether there were any.
class ClusterReader {
 public:
  explicit ClusterReader(const Value& value) : value_(value) {}

  ClusterSpec read() {
    MapReader map(value_, "the cluster", problems_);
    spec_.name = map.optional<std::string>("name", "cluster");
    spec_.device = map.required<std::string>("device").value_or("");
    read_compute_capability(map);
    gpus_ = map.required_in<std::int64_t>("gpus", {1, most_devices});
    node_ = map.require("node");
    tiers_ = map.find("tiers");
    const Value* speed = map.find("speed");
    const Value* links = map.find("links");
    const Value* routing = map.find("routing");
    spec_.in_network_reduction = map.optional<bool>("in_network_reduction").value_or(false);
    const Fabrics fabrics{map.find("torus"), map.find("dragonfly"), map.find("graph")};
    map.finish();

    spec_.devices = gpus_.value_or(0);
    if (node_ != nullptr) read_node();
    if (tiers_ != nullptr) read_tiers();
    if (speed != nullptr) read_speed(*speed);
    if (routing != nullptr) spec_.routing = read_routing(*routing, problems_);
    check_whole_nodes();
    if (problems_.empty()) read_fabric(fabrics);
    if (!fabrics.any()) check_reach();
    if (links != nullptr && problems_.empty()) read_links(*links);
    return spec_;
  }
  [[nodiscard]] const Diagnostics& problems() const { return problems_; }

 private:
  /// What may stand instead of tiers; at most one is there.
  struct Fabrics {
    const Value* torus;
    const Value* dragonfly;
    const Value* graph;
    [[nodiscard]] bool any() const { return torus != nullptr || dragonfly != nullptr || graph != nullptr; }
  };

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

  void read_node() {
    MapReader node(*node_, "the node", problems_);
    node_gpus_ = node.required_in<std::int64_t>("gpus", {1, 65536});
    spec_.devices_per_node = node_gpus_.value_or(1);
    spec_.device_memory = positive<Bytes>(node, "gpu_memory");
    spec_.host_memory = positive<Bytes>(node, "host_memory");
    if (const Value* cpu = node.find("cpu")) {
      const auto chosen = read_choice(*cpu, "host processor", {"intel", "amd"}, problems_);
      spec_.cpu = chosen == std::size_t{1} ? HostCpu::amd : HostCpu::intel;
    }
    const Value* nvlink = node.find("nvlink");
    const bool several_nodes = gpus_ && node_gpus_ && *gpus_ > *node_gpus_;
    const Value* nics = needed_if(several_nodes, node, "nics", "more than one node");
    const Value* pcie = node.require("pcie");
    node.finish();
    if (nvlink != nullptr) read_nvlink(*nvlink);
    if (nics != nullptr) read_nics(*nics);
    if (pcie != nullptr) read_pcie(*pcie);
  }

  void read_nvlink(const Value& value) {
    MapReader map(value, "nvlink", problems_);
    spec_.nvlink = positive<Bandwidth>(map, "bandwidth");
    spec_.nvlink_latency = latency(map);
    map.finish();
  }

  void read_nics(const Value& value) {
    MapReader map(value, "nics", problems_);
    spec_.nics_per_node = map.required_in<std::int64_t>("count", {1, 65536}).value_or(1);
    spec_.nic = positive<Bandwidth>(map, "bandwidth");
    map.finish();
    check_divides_node(map, "count", "nics", spec_.nics_per_node);
  }

  void read_pcie(const Value& value) {
    MapReader map(value, "pcie", problems_);
    spec_.pcie = positive<Bandwidth>(map, "bandwidth");
    spec_.devices_per_pcie_uplink = map.optional_in<std::int64_t>("gpus_per_uplink", {1, 65536}).value_or(1);
    map.finish();
    check_divides_node(map, "gpus_per_uplink", "gpus per PCIe uplink", spec_.devices_per_pcie_uplink);
  }

  void read_tiers() {
    if (!tiers_->is_map()) {
      problems_.error(tiers_->position, fmt::format("the tiers must be a map, found {}", kind_name(tiers_->kind)),
                      "write one line a tier, from the nodes up: tor: {fan_in: 64, latency: 0.8 us}");
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
    tier.oversubscription = map.optional_in<double>("oversubscription", {1, infinity}).value_or(1);
    tier.latency = latency(map);
    tier.uplinks = map.optional_in<std::int64_t>("uplinks", {1, most_fan_in});
    map.finish();
    spec_.tiers.push_back(std::move(tier));
  }

  void read_speed(const Value& value) {
    if (!value.is_map()) {
      problems_.error(value.position, fmt::format("speed must be a map, found {}", kind_name(value.kind)),
                      "write gpu: factor, for example 17: 0.8");
      return;
    }
    for (const auto& entry : value.entries) read_speed_entry(entry);
  }

  void read_speed_entry(const Value::Entry& entry) {
    const auto factor = hdpsim::read<double>(entry.value, problems_);
    if (factor && !(*factor > 0)) {
      problems_.error(entry.value.position, fmt::format("a speed of {} is not above zero", entry.value.text),
                      "1 is nominal, 0.8 takes a quarter longer; leave a gpu out of the job by lowering 'gpus'");
    }
    const auto selector = parse_speed_selector(entry.key);
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
    if (!value.is_map()) {
      problems_.error(value.position, fmt::format("links must be a map, found {}", kind_name(value.kind)),
                      "write link: share of its rate, for example node 3 nic 2: 0.5");
      return;
    }
    for (const auto& entry : value.entries) {
      const auto factor = hdpsim::read<double>(entry.value, problems_);
      if (factor && !(*factor > 0 && *factor <= 1)) {
        problems_.error(entry.value.position,
                        fmt::format("a share of {} is not above 0 and at most 1", entry.value.text),
                        "0.5 carries half; leave a node out of the job by lowering 'gpus'");
      }
      for (DegradedLink link : parse_link_selector(entry.key, spec_, entry.position, problems_)) {
        link.factor = factor.value_or(1);
        spec_.degraded.push_back(link);
      }
    }
  }

  template <class T>
  T positive(MapReader& map, std::string_view key) {
    const std::optional<T> amount = map.required<T>(key);
    if (!amount) return T{};
    const Value& written = *map.value().find(key);
    if (*amount <= T{}) {
      problems_.error(written.position, fmt::format("'{}' is {}, it must be above zero", key, written.text));
    }
    if constexpr (std::is_same_v<T, Bandwidth>) {
      if (*amount > highest_bandwidth) {
        problems_.error(written.position, fmt::format("'{}' is {}, at most 1000 TB/s are possible", key, written.text));
      }
    }
    return *amount;
  }

  Duration latency(MapReader& map) {
    const auto time = map.optional<Duration>("latency");
    if (!time || *time >= Duration{}) return time.value_or(Duration{});
    const Value& written = *map.value().find("latency");
    problems_.error(written.position, fmt::format("'latency' is {}, it must not be negative", written.text));
    return Duration{};
  }

  const Value* needed_if(bool needed, MapReader& map, std::string_view key, std::string_view why) {
    const Value* found = map.find(key);
    if (found == nullptr && needed) map.error(fmt::format("the node needs '{}': there is {}", key, why));
    return found;
  }

  void check_divides_node(MapReader& map, std::string_view key, std::string_view what, std::int64_t count) {
    if (!node_gpus_ || count < 1 || *node_gpus_ % count == 0) return;
    problems_.error(map.value().find(key)->position,
                    fmt::format("{} {} do not divide the node's {} gpus", count, what, *node_gpus_),
                    fmt::format("write a divisor of {}", *node_gpus_));
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
  const Value* node_ = nullptr;
  const Value* tiers_ = nullptr;
  std::optional<std::int64_t> gpus_;
  std::optional<std::int64_t> node_gpus_;
  bool tiers_readable_ = true;
  ClusterSpec spec_;
  Diagnostics problems_;
};

// Maps are merged key by key, anything else is replaced.
void overlay(Value& base, const Value& overrides) {
  if (!base.is_map() || !overrides.is_map()) {
    base = overrides;
    return;
  }
  for (const auto& entry : overrides.entries) {
    if (Value* existing = base.find(entry.key)) {
      overlay(*existing, entry.value);
    } else {
      base.entries.push_back(entry);
    }
  }
}

Value without(const Value& map, std::string_view key) {
  Value rest = map;
  std::erase_if(rest.entries, [&](const Value::Entry& entry) { return entry.key == key; });
  return rest;
}

Value load_preset(const Value& name, const std::filesystem::path& directory, Diagnostics& diagnostics) {
  const auto chosen = read_choice(name, "cluster preset", cluster_preset_names(directory), diagnostics);
  if (!chosen) return {};
  return load_document((directory / (name.text + ".yaml")).string(), diagnostics);
}

Value load_file(const Value& path, Diagnostics& diagnostics) {
  const auto text = read<std::string>(path, diagnostics);
  if (!text) return {};
  const auto file = std::filesystem::path(path.position.file).parent_path() / *text;
  if (std::filesystem::exists(file)) return load_document(file.string(), diagnostics);
  diagnostics.error(path.position, fmt::format("there is no file '{}'", file.string()),
                    "for a shipped cluster write {preset: name}");
  return {};
}

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
  const Value full = expand_cluster(value, preset_directory, diagnostics);
  if (full.is_null()) return std::nullopt;
  return read_cluster(full, diagnostics);
}

Value expand_cluster(const Value& value, const std::filesystem::path& preset_directory, Diagnostics& diagnostics) {
  if (value.is_scalar()) return load_file(value, diagnostics);
  const Value* preset = value.find("preset");
  const Value* file = value.find("file");
  if (preset == nullptr && file == nullptr) return value;
  if (preset != nullptr && file != nullptr) {
    diagnostics.error(file->position, "a cluster is either a preset or a file", "remove one of them");
    return {};
  }
  Value base = preset != nullptr ? load_preset(*preset, preset_directory, diagnostics) : load_file(*file, diagnostics);
  if (base.is_map()) overlay(base, without(value, preset != nullptr ? "preset" : "file"));
  return base;
}

std::vector<std::string> cluster_preset_names(const std::filesystem::path& preset_directory) {
  std::vector<std::string> names;
  std::error_code missing;
  for (const auto& entry : std::filesystem::directory_iterator(preset_directory, missing)) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace hdpsim
