#include "sim/cluster/impl/node_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/cluster/impl/keys.h"

namespace hdpsim {

void NodeReader::read_node(const Value& value) {
  MapReader node(value, "the node", diagnostics_);
  node_gpus_ = node.required_in<std::int64_t>("gpus", {1, 65536});
  spec_.devices_per_node = node_gpus_.value_or(1);
  spec_.device_memory = positive<Bytes>(node, "gpu_memory");
  spec_.host_memory = positive<Bytes>(node, "host_memory");
  if (const Value* cpu = node.find("cpu")) {
    const auto chosen = read_choice(*cpu, "host processor", {"intel", "amd"}, diagnostics_);
    spec_.cpu = chosen == std::size_t{1} ? HostCpu::amd : HostCpu::intel;
  }
  const Value* nvlink = node.find("nvlink");
  const Value* nics = node.find("nics");
  const Value* pcie = node.require("pcie");
  node.finish();
  if (nics == nullptr && gpus_ && node_gpus_ && *gpus_ > *node_gpus_) {
    node.error("the node needs 'nics': there is more than one node");
  }
  if (nvlink != nullptr) read_nvlink(*nvlink);
  if (nics != nullptr) read_nics(*nics);
  if (pcie != nullptr) read_pcie(*pcie);
}

void NodeReader::read_nvlink(const Value& value) {
  MapReader map(value, "nvlink", diagnostics_);
  spec_.nvlink = positive<Bandwidth>(map, "bandwidth");
  spec_.nvlink_latency = latency(map);
  map.finish();
}

void NodeReader::read_nics(const Value& value) {
  MapReader map(value, "nics", diagnostics_);
  spec_.nics_per_node = map.required_in<std::int64_t>("count", {1, 65536}).value_or(1);
  spec_.nic = positive<Bandwidth>(map, "bandwidth");
  spec_.ports_per_nic = map.optional_in<std::int64_t>("ports", {1, ClusterSpec::most_ports}).value_or(1);
  map.finish();
  check_divides_node(map, "count", "nics", spec_.nics_per_node);
}

void NodeReader::read_pcie(const Value& value) {
  MapReader map(value, "pcie", diagnostics_);
  spec_.pcie = positive<Bandwidth>(map, "bandwidth");
  spec_.devices_per_pcie_uplink = map.optional_in<std::int64_t>("gpus_per_uplink", {1, 65536}).value_or(1);
  map.finish();
  check_divides_node(map, "gpus_per_uplink", "gpus per PCIe uplink", spec_.devices_per_pcie_uplink);
}

void NodeReader::check_divides_node(MapReader& map, std::string_view key, std::string_view what, std::int64_t count) {
  if (!node_gpus_ || count < 1 || *node_gpus_ % count == 0) return;
  diagnostics_.error(map.value().find(key)->position,
                     fmt::format("{} {} do not divide the node's {} gpus", count, what, *node_gpus_),
                     fmt::format("write a divisor of {}", *node_gpus_));
}

void NodeReader::read_kinds(const Value& value) {
  if (!require_map(value, "node_kinds", "old: {nodes: 16-31, speed: 0.4}", diagnostics_)) return;
  for (const auto& entry : value.entries) read_kind(entry);
  sort_ranges(value);
}

void NodeReader::read_kind(const Value::Entry& entry) {
  MapReader map(entry.value, fmt::format("the kind '{}'", entry.key), diagnostics_);
  NodeKind kind{.name = entry.key,
                .device = map.optional<std::string>("device", spec_.device),
                .device_memory = spec_.device_memory,
                .host_memory = spec_.host_memory};
  const Value* nodes = map.require("nodes");
  kind.speed = map.required_in<double>("speed", {limits::least_speed, limits::most_speed}).value_or(1);
  if (const Value* memory = map.find("gpu_memory")) {
    kind.device_memory = positive<Bytes>(*memory, "gpu_memory", diagnostics_);
  }
  if (const Value* memory = map.find("host_memory")) {
    kind.host_memory = positive<Bytes>(*memory, "host_memory", diagnostics_);
  }
  kind.nvlink = kind_rate(map, "nvlink", spec_.nvlink);
  kind.nic = kind_rate(map, "nics", spec_.nic);
  map.finish();
  spec_.kinds.push_back(std::move(kind));
  if (nodes != nullptr) read_kind_nodes(*nodes, spec_.kinds.size() - 1);
}

// Only the rate may differ: a kind without links that other nodes have would be another shape of node.
Bandwidth NodeReader::kind_rate(MapReader& kind, std::string_view key, Bandwidth own) {
  const Value* value = kind.find(key);
  if (value == nullptr) return own;
  MapReader map(*value, fmt::format("{}", key), diagnostics_);
  const Bandwidth rate = positive<Bandwidth>(map, "bandwidth");
  map.finish();
  if (own == Bandwidth{}) {
    map.error(fmt::format("the other nodes have no '{}': all nodes need the same links", key), "add it to node");
  }
  return rate;
}

void NodeReader::read_kind_nodes(const Value& value, std::size_t kind) {
  if (!value.is_sequence()) {
    read_kind_range(value, kind);
    return;
  }
  for (const Value& item : value.items) read_kind_range(item, kind);
}

void NodeReader::read_kind_range(const Value& value, std::size_t kind) {
  const auto text = read<std::string>(value, diagnostics_);
  if (!text) return;
  const auto range = parse_number_range(*text);
  if (!range) {
    diagnostics_.error(value.position, fmt::format("'{}' names no nodes", *text), "write 3, 16-31 or [3, 16-31]");
    return;
  }
  if (gpus_ && node_gpus_ && range->last >= *gpus_ / *node_gpus_) {
    diagnostics_.error(value.position, fmt::format("there is no node {}", range->last),
                       fmt::format("the cluster has nodes 0 to {}", *gpus_ / *node_gpus_ - 1));
    return;
  }
  spec_.kind_ranges.push_back({range->first, range->last, kind});
}

void NodeReader::sort_ranges(const Value& kinds) {
  auto& ranges = spec_.kind_ranges;
  std::stable_sort(ranges.begin(), ranges.end(),
                   [](const NodeRange& a, const NodeRange& b) { return a.first < b.first; });
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].first > ranges[i - 1].last) continue;
    diagnostics_.error(kinds.entries[ranges[i].kind].position,
                       fmt::format("node {} belongs to '{}' and to '{}'", ranges[i].first,
                                   spec_.kinds[ranges[i - 1].kind].name, spec_.kinds[ranges[i].kind].name),
                       "a node is of one kind");
    return;
  }
}

}  // namespace hdpsim
