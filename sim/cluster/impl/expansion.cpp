#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/cluster/cluster_config.h"
#include "sim/cluster/device_facts.h"
#include "sim/cluster/impl/fabric_file.h"
#include "sim/cluster/impl/matrix_topology.h"
#include "sim/cluster/impl/nccl_node.h"
#include "sim/cluster/topology_matrix.h"
#include "sim/document/limits.h"
#include "sim/document/reader.h"

namespace hdpsim {
namespace {

constexpr int most_bases = 8;
constexpr std::size_t largest_topology_bytes = 2'000'000;  // for one node

// Maps are merged key by key, anything else is replaced.
void overlay(Value& base, const Value& overrides) {
  if (!base.is_map() || !overrides.is_map()) {
    base = overrides;
    return;
  }
  std::vector<Value::Entry> added;
  for (const auto& entry : overrides.entries) {
    if (Value* existing = base.find(entry.key)) {
      overlay(*existing, entry.value);
    } else {
      added.push_back(entry);
    }
  }
  base.entries.insert(base.entries.end(), added.begin(), added.end());
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

std::filesystem::path in_folder_of(const Value& naming, const std::string& path) {
  return std::filesystem::path(naming.position.file).parent_path() / path;
}

Value load_file(const Value& path, Diagnostics& diagnostics) {
  const auto text = read<std::string>(path, diagnostics);
  if (!text) return {};
  const auto file = in_folder_of(path, *text);
  if (is_there(file) && holds_topology_matrix(file)) {
    refuse_topology_matrix(file, diagnostics);
    return {};
  }
  if (is_there(file)) return load_document(file.string(), diagnostics);
  diagnostics.error(path.position, fmt::format("there is no file '{}'", file.string()),
                    "for a shipped cluster write {preset: name}");
  return {};
}

/// Clusters that are based on others: a preset or a file, with all other keys laid over it.
class Bases {
 public:
  Bases(const std::filesystem::path& presets, Diagnostics& diagnostics)
      : presets_(presets), diagnostics_(diagnostics) {}

  Value load(const Value& value, int depth = 0) {
    if (value.is_scalar()) return based_on(value, load_file(value, diagnostics_), depth);
    const Value* preset = value.find("preset");
    const Value* file = value.find("file");
    if (preset == nullptr && file == nullptr) return value;
    if (preset != nullptr && file != nullptr) {
      diagnostics_.error(file->position, "a cluster is either a preset or a file", "remove one of them");
      return {};
    }
    Value base = preset != nullptr ? based_on(*preset, load_preset(*preset, presets_, diagnostics_), depth)
                                   : based_on(*file, load_file(*file, diagnostics_), depth);
    if (base.is_map()) overlay(base, without(value, preset != nullptr ? "preset" : "file"));
    return base;
  }

 private:
  Value based_on(const Value& named_by, const Value& loaded, int depth) {
    if (!loaded.is_map()) return loaded;
    if (depth < most_bases) return load(loaded, depth + 1);
    diagnostics_.error(named_by.position,
                       fmt::format("a cluster of more than {} files, each based on the next", most_bases),
                       "does one of them name itself?");
    return {};
  }

  const std::filesystem::path& presets_;
  Diagnostics& diagnostics_;
};

std::optional<NcclTopology> load_topology(const Value& path, int capability, Diagnostics& diagnostics) {
  const auto text = read<std::string>(path, diagnostics);
  if (!text) return std::nullopt;
  const auto file = in_folder_of(path, *text);
  if (!is_there(file)) {
    diagnostics.error(path.position, fmt::format("there is no file '{}'", file.string()));
    return std::nullopt;
  }
  const auto contents = read_text_file(file.string(), largest_topology_bytes, diagnostics);
  if (!contents) return std::nullopt;
  return holds_topology_matrix(file) ? read_matrix_topology(file.string(), *contents, capability, diagnostics)
                                     : read_nccl_topology(file.string(), *contents, diagnostics);
}

// Whether the cluster has more gpus than one node of the topology, as far as that is known here.
bool has_several_nodes(const Value& cluster, const NcclTopology& topology) {
  const Value* gpus = cluster.find("gpus");
  if (gpus == nullptr) return true;
  Diagnostics told_later;
  const auto count = read<std::int64_t>(*gpus, told_later);
  return !count || *count > static_cast<std::int64_t>(topology.gpus.size());
}

void add_notes(Value& cluster, const std::vector<std::string>& notes) {
  Value list = Value::sequence();
  if (const Value* written = cluster.find("notes"); written != nullptr && written->is_sequence()) list = *written;
  for (const std::string& note : notes) {
    list.items.push_back(Value::scalar(note));
    list.items.back().quoted = true;
  }
  cluster.set("notes", std::move(list));
}

// The compute capability that a cluster states in tenths, or that its device has.
int capability_of(const Value& cluster) {
  Diagnostics told_later;
  const Value* stated = cluster.find("compute_capability");
  const auto capability = stated == nullptr ? std::nullopt : read<double>(*stated, told_later);
  if (capability) return static_cast<int>(std::lround(10 * *capability));
  const Value* device = cluster.find("device");
  return device == nullptr ? unknown_capability : compute_capability_of(device->text);
}

// Replaces `node.nccl_topology` by the keys that it replaces. False if it has none that can be used.
bool import_topology(Value& cluster, Diagnostics& diagnostics) {
  Value* node = cluster.find("node");
  const Value* path = node == nullptr ? nullptr : node->find("nccl_topology");
  if (path == nullptr) return true;
  const int capability = capability_of(cluster);
  auto topology = load_topology(*path, capability, diagnostics);
  if (!topology) return false;
  topology->state_capability(capability);
  Diagnostics problems;
  NcclNode imported = node_of_topology(*topology, *node, has_several_nodes(cluster, *topology), problems);
  diagnostics.append(problems);
  *node = without(*node, "nccl_topology");
  for (const auto& entry : imported.keys.entries) node->entries.push_back(entry);
  add_notes(cluster, imported.notes);
  return problems.empty();
}

// A number of the cluster at a key of `node`; empty if it is not there, or wrong, which is reported where it is read.
template <class Quantity>
std::optional<Quantity> of_node(const Value& cluster, std::initializer_list<std::string_view> keys) {
  const Value* at = &cluster;
  for (const std::string_view key : keys) at = at == nullptr ? nullptr : at->find(key);
  Diagnostics told_later;
  return at == nullptr ? std::nullopt : read<Quantity>(*at, told_later);
}

// Replaces `graph.file` by the keys of a graph. False if it cannot be used.
bool import_fabric(Value& cluster, Diagnostics& diagnostics) {
  const Value* graph = cluster.find("graph");
  const Value* path = graph == nullptr ? nullptr : graph->find("file");
  if (path == nullptr) return true;
  const auto name = read<std::string>(*path, diagnostics);
  if (!name) return false;
  const std::string file = in_folder_of(*path, *name).string();
  const auto text = read_text_file(file, diagnostics);
  if (!text) return false;
  const auto gpus = of_node<std::int64_t>(cluster, {"gpus"});
  const auto each = of_node<std::int64_t>(cluster, {"node", "gpus"});
  const auto nics = of_node<std::int64_t>(cluster, {"node", "nics", "count"});
  const auto rate = of_node<Bandwidth>(cluster, {"node", "nics", "bandwidth"});
  if (!gpus || !each || !nics || !rate || *each < 1) {
    diagnostics.error(path->position, "which NICs the fabric joins needs gpus, node.gpus and node.nics",
                      "write them beside the file");
    return false;
  }
  Diagnostics problems;
  problems.add_source(file, *text);
  const bool is_slurm = text->find("SwitchName") != std::string::npos;
  ListedFabric fabric =
      is_slurm ? read_slurm_topology(file, *text, problems) : read_ibnetdiscover(file, *text, problems);
  const bool is_tree_or_even = fabric.hosts.empty() || fabric.hosts.front().attached.size() == 1 ||
                               static_cast<std::int64_t>(fabric.hosts.front().attached.size()) == *nics;
  if (!is_tree_or_even) {
    problems.error(path->position, fmt::format("hosts of the file have {} NICs, node.nics.count is {}",
                                               fabric.hosts.front().attached.size(), *nics));
  }
  Value listed = problems.empty() ? graph_of(fabric, *gpus / *each, *nics, *rate, problems) : Value{};
  diagnostics.append(problems);
  if (!problems.empty()) return false;
  cluster.set("graph", std::move(listed));
  add_notes(cluster, fabric.notes);
  return true;
}

}  // namespace

Value expand_cluster(const Value& value, const std::filesystem::path& preset_directory, Diagnostics& diagnostics) {
  Value cluster = Bases(preset_directory, diagnostics).load(value);
  return import_topology(cluster, diagnostics) && import_fabric(cluster, diagnostics) ? cluster : Value{};
}

std::vector<std::string> cluster_preset_names(const std::filesystem::path& preset_directory) {
  return names_in(preset_directory, ".yaml");
}

}  // namespace hdpsim
