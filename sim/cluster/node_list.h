#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/base/id.h"
#include "sim/cluster/cluster.h"
#include "sim/document/document.h"

namespace hdpsim {

/// The nodes on which a job runs, in the order in which its ranks have them.
class NodeList {
 public:
  /// Every node of the cluster, however many there are.
  NodeList() = default;
  /// At least one node, each once (checked).
  explicit NodeList(std::vector<NodeId> nodes);

  /// Whether it is every node of any cluster, in the cluster's order.
  [[nodiscard]] bool is_all() const { return nodes_.empty(); }
  [[nodiscard]] std::int64_t count(const ClusterSpec& cluster) const;
  [[nodiscard]] std::int64_t devices(const ClusterSpec& cluster) const;
  /// The `place`-th device of the job: node by node, in the order of the nodes.
  [[nodiscard]] DeviceId device(std::size_t place, std::int64_t devices_per_node) const;
  [[nodiscard]] NodeId node(std::size_t place) const;

 private:
  std::vector<NodeId> nodes_;  // empty: all nodes
};

/// Reads `17`, `32-39`, `every 2` or `every 2 from 1` (up to the last node), or a list of these: nodes in ascending
/// order. Empty, with the problem reported, if a node does not exist or is named twice.
[[nodiscard]] std::optional<NodeList> read_nodes(const Value& value, const ClusterSpec& cluster,
                                                 Diagnostics& diagnostics);

/// Indices first, first + step, ... up to last; if empty, up to the last index that exists.
struct IndexRange {
  std::int64_t first = 0;
  std::optional<std::int64_t> last = {};
  std::int64_t step = 1;
};

/// Parses `17` or `32-39`; empty for any other text. The range has a last index.
[[nodiscard]] std::optional<IndexRange> parse_closed_range(std::string_view text);
/// Parses these, `every 64` or `every 64 from 3`.
[[nodiscard]] std::optional<IndexRange> parse_index_range(std::string_view text);

}  // namespace hdpsim
