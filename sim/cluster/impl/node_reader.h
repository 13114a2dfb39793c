#pragma once

#include <cstdint>
#include <optional>

#include "sim/cluster/cluster.h"
#include "sim/document/reader.h"

namespace hdpsim {

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
  void read_nvlink(const Value& value);
  void read_nics(const Value& value);
  void read_pcie(const Value& value);
  void check_divides_node(MapReader& map, std::string_view key, std::string_view what, std::int64_t count);
  void read_kind(const Value::Entry& entry);
  void read_kind_nodes(const Value& value, std::size_t kind);
  void read_kind_range(const Value& value, std::size_t kind);
  [[nodiscard]] Bandwidth kind_rate(MapReader& kind, std::string_view key, Bandwidth own);
  void sort_ranges(const Value& kinds);

  ClusterSpec& spec_;
  std::optional<std::int64_t> gpus_;
  std::optional<std::int64_t> node_gpus_;
  Diagnostics& diagnostics_;
};

}  // namespace hdpsim
