#pragma once

#include <cstdint>
#include <optional>

#include "sim/cluster/cluster.h"
#include "sim/document/key_table.h"

namespace hdpsim {

/// The keys of `node`, and of one of the `node_kinds`.
[[nodiscard]] const std::vector<KeyText>& node_keys();
[[nodiscard]] const std::vector<KeyText>& node_kind_keys();

/// Reads `node` and `node_kinds` of a cluster file into a spec.
class NodeReader {
 public:
  /// `gpus` is the number of gpus of the cluster, if that could be read.
  NodeReader(ClusterSpec& spec, std::optional<std::int64_t> gpus, Diagnostics& diagnostics)
      : spec_(spec), gpus_(gpus), diagnostics_(diagnostics) {}

  void read_node(const Value& value);
  /// Reads the kinds, after the node from which they differ.
  void read_kinds(const Value& value);
  /// Empty if it could not be read.
  [[nodiscard]] std::optional<std::int64_t> gpus_per_node() const { return node_gpus_; }

 private:
  bool take_several_nics_as_one();
  void take_part();
  void check_divides_node(const Value* map, std::string_view key, std::string_view what, std::int64_t count);
  void read_kind(const Value::Entry& entry);
  void read_kind_nodes(const Value& value, std::size_t kind);
  void read_kind_range(const Value& value, std::size_t kind);
  void check_has(const Value& kind, std::string_view link, Bandwidth own);
  void sort_ranges(const Value& kinds);

  ClusterSpec& spec_;
  std::optional<std::int64_t> gpus_;
  std::optional<std::int64_t> node_gpus_;
  std::int64_t nics_as_one_ = 1;
  Diagnostics& diagnostics_;
};

/// The devices that each node gives to a job of `devices` devices: all of a node or, where jobs get trays of a node
/// (ClusterSpec::devices_per_tray), equally many of as few nodes as possible. Empty where that would take more than
/// twice the nodes that hold so many devices, or halve a NIC or a PCIe uplink. `node` is a cluster of whole nodes.
[[nodiscard]] std::optional<std::int64_t> devices_of_each_node(const ClusterSpec& node, std::int64_t devices);

/// Leaves `devices` devices of every node, with their share of its NICs and of the memory of its host.
void take_part_of_nodes(ClusterSpec& cluster, std::int64_t devices);

}  // namespace hdpsim
