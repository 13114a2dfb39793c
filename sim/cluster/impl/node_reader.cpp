#include "sim/cluster/impl/node_reader.h"

#include <fmt/format.h>
#include <algorithm>

#include "sim/base/division.h"
#include "sim/base/quantity_limits.h"
#include "sim/cluster/impl/fabric_reader.h"
#include "sim/cluster/node_list.h"

namespace hdpsim {
namespace {

constexpr Range gpus_range{1, 65536};

const KeyTable<ClusterSpec>& nvlink_keys() {
  static const auto made = [] {
    KeyTable<ClusterSpec> keys("nvlink");
    keys.quantity("bandwidth", limits::bandwidth, at(&ClusterSpec::nvlink), "per GPU and direction",
                  {.required = true});
    keys.quantity("latency", limits::latency, at(&ClusterSpec::nvlink_latency), "of a message within the node");
    return keys;
  }();
  return made;
}

const KeyTable<ClusterSpec>& nic_keys() {
  static const auto made = [] {
    KeyTable<ClusterSpec> keys("nics");
    keys.count(
        "count", gpus_range, at(&ClusterSpec::nics_per_node),
        "NICs of a node, among which its GPUs are divided in their order; NIC i lies on rail i; several a GPU act "
        "as one",
        {.unit = "NICs", .required = true});
    keys.quantity("bandwidth", limits::bandwidth, at(&ClusterSpec::nic),
                  "per NIC and direction, all of its ports together", {.required = true});
    keys.count("ports", {1, ClusterSpec::most_ports}, at(&ClusterSpec::ports_per_nic),
               "ports of a NIC, each on a switch plane of its own; with `tiers` only", {.unit = "ports"});
    return keys;
  }();
  return made;
}

const KeyTable<ClusterSpec>& pcie_keys() {
  static const auto made = [] {
    KeyTable<ClusterSpec> keys("pcie");
    keys.quantity("bandwidth", limits::bandwidth, at(&ClusterSpec::pcie), "per uplink and direction",
                  {.required = true});
    keys.count("gpus_per_uplink", gpus_range, at(&ClusterSpec::devices_per_pcie_uplink), "GPUs that share an uplink",
               {.unit = "GPUs"});
    return keys;
  }();
  return made;
}

void add_links(KeyTable<ClusterSpec>& node) {
  const auto add = [&](const char* name, const KeyTable<ClusterSpec>& keys, const char* sentence, KeyNotes notes) {
    node.add({name, map_shape(keys.texts()), "", sentence, notes},
             [&keys](const Value& value, ClusterSpec& spec, Diagnostics& diagnostics) {
               (void)keys.read(value, spec, diagnostics);
             });
  };
  add("nvlink", nvlink_keys(), "what joins the GPUs of a node", {.otherwise = "they talk over PCIe"});
  add("nics", nic_keys(), "what joins a node to the others", {.otherwise = "none: there is one node"});
  add("pcie", pcie_keys(), "what joins the GPUs to host memory", {.required = true});
}

const KeyTable<ClusterSpec>& node_table() {
  static const auto made = [] {
    KeyTable<ClusterSpec> keys("the node");
    keys.count("gpus", gpus_range, at(&ClusterSpec::devices_per_node), "GPUs of a node",
               {.unit = "GPUs", .required = true});
    keys.count(
        "gpus_per_tray", gpus_range, at(&ClusterSpec::devices_per_tray),
        "a cluster may have a part of its nodes, in trays of so many GPUs: equally many of as few nodes as possible",
        {.unit = "GPUs", .otherwise = "a cluster has whole nodes"});
    keys.quantity("gpu_memory", limits::memory, at(&ClusterSpec::device_memory), "memory of a GPU", {.required = true});
    keys.quantity("host_memory", limits::memory, at(&ClusterSpec::host_memory), "memory of a node's host",
                  {.required = true});
    keys.word("cpu", "host processor", {{"intel", HostCpu::intel}, {"amd", HostCpu::amd}}, at(&ClusterSpec::cpu),
              "vendor of the host's processors, on which NCCL's rates of small messages depend");
    add_links(keys);
    return keys;
  }();
  return made;
}

/// A kind of nodes as its map states it.
struct KindText {
  NodeKind kind;
  const Value* nodes = nullptr;
};

// Only the rate may differ: a kind with links that other nodes lack would be another shape of node.
template <class Member>
KeyTable<KindText> rate_keys(const char* link, Member member) {
  KeyTable<KindText> keys(link);
  keys.quantity("bandwidth", limits::bandwidth, at(&KindText::kind, member), "as that of `node`", {.required = true});
  return keys;
}

void add_rate(KeyTable<KindText>& kind, const char* link, const KeyTable<KindText>& keys) {
  kind.add(
      {link, map_shape(keys.texts()), "", "only the rate may differ from that of `node`", {.otherwise = "the node's"}},
      [&keys](const Value& value, KindText& text, Diagnostics& diagnostics) {
        (void)keys.read(value, text, diagnostics);
      });
}

const KeyTable<KindText>& kind_table() {
  static const KeyTable<KindText> nvlink = rate_keys("nvlink", &NodeKind::nvlink);
  static const KeyTable<KindText> nics = rate_keys("nics", &NodeKind::nic);
  static const auto made = [] {
    KeyTable<KindText> keys("the kind");
    const KeyShape nodes = either_shape({shape_of(KeyShape::Kind::count), shape_of(KeyShape::Kind::text)});
    keys.kept({"nodes",
               either_shape({nodes, list_shape(nodes)}),
               "",
               "the nodes of this kind: `17`, `16-31` or a list",
               {.required = true}},
              &KindText::nodes);
    keys.number("speed", {limits::least_speed, limits::most_speed}, at(&KindText::kind, &NodeKind::speed),
                "compute speed of its GPUs, relative to the profile's device", {.required = true});
    keys.text("device", at(&KindText::kind, &NodeKind::device), "its device, for reports",
              {.otherwise = "the cluster's"});
    keys.quantity("gpu_memory", limits::memory, at(&KindText::kind, &NodeKind::device_memory), "memory of its GPUs",
                  {.otherwise = "the node's"});
    keys.quantity("host_memory", limits::memory, at(&KindText::kind, &NodeKind::host_memory), "memory of its hosts",
                  {.otherwise = "the node's"});
    add_rate(keys, "nvlink", nvlink);
    add_rate(keys, "nics", nics);
    return keys;
  }();
  return made;
}

bool can_give(const ClusterSpec& node, std::int64_t devices) {
  const std::int64_t tray = *node.devices_per_tray;
  const bool is_in_trays = devices % tray == 0 || devices < tray;
  const std::int64_t uplink = std::min(node.devices_per_pcie_uplink, devices);
  return is_in_trays && devices % uplink == 0 && devices * node.nics_per_node % node.devices_per_node == 0;
}

}  // namespace

const std::vector<KeyText>& node_keys() {
  return node_table().texts();
}

const std::vector<KeyText>& node_kind_keys() {
  return kind_table().texts();
}

void NodeReader::read_node(const Value& value) {
  const KeyReading reading = node_table().read(value, spec_, diagnostics_);
  if (reading.is_right("gpus")) node_gpus_ = spec_.devices_per_node;
  const Value* nics = value.find("nics");
  if ((nics == nullptr || nics->is_null()) && gpus_ && node_gpus_ && *gpus_ > *node_gpus_) {
    diagnostics_.error(value.position, "the node needs 'nics': there is more than one node");
  }
  if (!take_several_nics_as_one()) check_divides_node(nics, "count", "nics", spec_.nics_per_node);
  check_divides_node(value.find("pcie"), "gpus_per_uplink", "gpus per PCIe uplink", spec_.devices_per_pcie_uplink);
  if (diagnostics_.empty()) take_part();
}

// As where NCCL describes the node: the NICs of a gpu act as one with the rates of all.
bool NodeReader::take_several_nics_as_one() {
  if (!node_gpus_ || spec_.nics_per_node <= *node_gpus_ || spec_.nics_per_node % *node_gpus_ != 0) return false;
  nics_as_one_ = spec_.nics_per_node / *node_gpus_;
  spec_.nic = spec_.nic * nics_as_one_;
  spec_.nics_per_node = *node_gpus_;
  spec_.notes.push_back(fmt::format("{} NICs a gpu act as one here", nics_as_one_));
  return true;
}

void NodeReader::take_part() {
  if (!gpus_ || !node_gpus_) return;
  const auto each = devices_of_each_node(spec_, *gpus_);
  if (!each || *each == *node_gpus_) return;  // the cluster checks for whole nodes
  const std::int64_t nodes = *gpus_ / *each;
  spec_.notes.push_back(fmt::format("{} gpus are {} of the {} of {}", *gpus_, *each, *node_gpus_,
                                    nodes == 1 ? "one node" : fmt::format("each of {} nodes", nodes)));
  take_part_of_nodes(spec_, *each);
  node_gpus_ = *each;
}

void NodeReader::check_divides_node(const Value* map, std::string_view key, std::string_view what, std::int64_t count) {
  if (!node_gpus_ || *node_gpus_ % count == 0) return;  // as where the key is left out or wrong
  diagnostics_.error(map->find(key)->position,
                     fmt::format("{} {} do not divide the node's {} gpus", count, what, *node_gpus_),
                     fmt::format("write a divisor{} of {}", key == "count" ? " or a multiple" : "", *node_gpus_));
}

void NodeReader::read_kinds(const Value& value) {
  if (!require_map(value, "node_kinds", "old: {nodes: 16-31, speed: 0.4}", diagnostics_)) return;
  for (const auto& entry : value.entries) read_kind(entry);
  sort_ranges(value);
}

void NodeReader::read_kind(const Value::Entry& entry) {
  KindText text{.kind = {.name = entry.key,
                         .device = spec_.device,
                         .device_memory = spec_.device_memory,
                         .host_memory = spec_.host_memory,
                         .nvlink = spec_.nvlink,
                         .nic = spec_.nic}};
  (void)kind_table().read(entry.value, text, diagnostics_, fmt::format("the kind '{}'", entry.key));
  check_has(entry.value, "nvlink", spec_.nvlink);
  check_has(entry.value, "nics", spec_.nic);
  if (entry.value.find("nics") != nullptr && !entry.value.find("nics")->is_null()) {
    text.kind.nic = text.kind.nic * nics_as_one_;
  }
  spec_.kinds.push_back(std::move(text.kind));
  if (text.nodes != nullptr) read_kind_nodes(*text.nodes, spec_.kinds.size() - 1);
}

void NodeReader::check_has(const Value& kind, std::string_view link, Bandwidth own) {
  const Value* value = kind.find(link);
  if (value == nullptr || value->is_null() || own != Bandwidth{}) return;
  diagnostics_.error(value->position, fmt::format("the other nodes have no '{}': all nodes need the same links", link),
                     "add it to node");
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
  const auto range = parse_closed_range(*text);
  if (!range) {
    diagnostics_.error(value.position, fmt::format("'{}' names no nodes", *text), "write 3, 16-31 or [3, 16-31]");
    return;
  }
  if (gpus_ && node_gpus_ && range->last >= *gpus_ / *node_gpus_) {
    diagnostics_.error(value.position, fmt::format("there is no node {}", *range->last),
                       fmt::format("the cluster has nodes 0 to {}", *gpus_ / *node_gpus_ - 1));
    return;
  }
  spec_.kind_ranges.push_back({range->first, *range->last, kind});
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

std::optional<std::int64_t> devices_of_each_node(const ClusterSpec& node, std::int64_t devices) {
  if (devices % node.devices_per_node == 0) return node.devices_per_node;
  if (!node.devices_per_tray) return std::nullopt;
  const std::int64_t least = divided(devices, node.devices_per_node);
  for (std::int64_t nodes = least; nodes <= 2 * least; ++nodes) {
    if (devices % nodes == 0 && can_give(node, devices / nodes)) return devices / nodes;
  }
  return std::nullopt;
}

void take_part_of_nodes(ClusterSpec& cluster, std::int64_t devices) {
  const double part = static_cast<double>(devices) / static_cast<double>(cluster.devices_per_node);
  cluster.nics_per_node = devices * cluster.nics_per_node / cluster.devices_per_node;
  cluster.host_memory = cluster.host_memory.scaled(part);
  cluster.devices_per_pcie_uplink = std::min(cluster.devices_per_pcie_uplink, devices);
  cluster.devices_per_node = devices;
}

}  // namespace hdpsim
