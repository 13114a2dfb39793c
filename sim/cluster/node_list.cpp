#include "sim/cluster/node_list.h"

#include <fmt/format.h>
#include <algorithm>
#include <charconv>
#include <set>

#include "sim/base/check.h"
#include "sim/document/reader.h"

namespace hdpsim {
namespace {

/// Collects the nodes that one value, or each of a list, names.
class NodesReader {
 public:
  NodesReader(std::int64_t nodes, Diagnostics& diagnostics) : nodes_(nodes), diagnostics_(diagnostics) {}

  bool add(const Value& value) {
    const auto text = hdpsim::read<std::string>(value, diagnostics_);
    if (!text) return false;
    const auto range = parse_index_range(*text);
    if (!range)
      return refuse(value, fmt::format("'{}' names no nodes", *text), "write 17, 32-39, every 2 or every 2 from 1");
    const std::int64_t last = range->last.value_or(nodes_ - 1);
    const std::int64_t highest = std::max(range->first, last);
    if (highest >= nodes_) {
      return refuse(value, fmt::format("there is no node {}", highest),
                    fmt::format("the cluster has nodes 0 to {}", nodes_ - 1));
    }
    for (std::int64_t node = range->first;; node += range->step) {
      if (!found_.insert(node).second) {
        return refuse(value, fmt::format("node {} is stated a second time here", node), "name every node once");
      }
      if (last - node < range->step) return true;
    }
  }

  [[nodiscard]] NodeList take() const {
    std::vector<NodeId> nodes;
    nodes.reserve(found_.size());
    for (const std::int64_t node : found_) nodes.emplace_back(static_cast<std::size_t>(node));
    return NodeList(std::move(nodes));
  }

 private:
  bool refuse(const Value& value, const std::string& problem, const std::string& help) {
    diagnostics_.error(value.position, problem, help);
    return false;
  }

  std::int64_t nodes_;
  Diagnostics& diagnostics_;
  std::set<std::int64_t> found_;
};

std::optional<std::int64_t> index_of(std::string_view text) {
  std::int64_t index = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (error != std::errc{} || end != text.data() + text.size() || index < 0) return std::nullopt;
  return index;
}

std::optional<IndexRange> parse_every(std::string_view text) {
  constexpr std::string_view from_word = " from ";
  const auto from = text.find(from_word);
  const auto step = index_of(text.substr(0, from));
  const auto first =
      from == std::string_view::npos ? std::optional<std::int64_t>{0} : index_of(text.substr(from + from_word.size()));
  if (!step || *step < 1 || !first) return std::nullopt;
  return IndexRange{.first = *first, .step = *step};
}

}  // namespace

NodeList::NodeList(std::vector<NodeId> nodes) : nodes_(std::move(nodes)) {
  const std::set<NodeId> each(nodes_.begin(), nodes_.end());
  HDPSIM_CHECK(!nodes_.empty() && each.size() == nodes_.size(), "{} nodes of a job, {} of them different",
               nodes_.size(), each.size());
}

std::int64_t NodeList::count(const ClusterSpec& cluster) const {
  return nodes_.empty() ? cluster.nodes() : static_cast<std::int64_t>(nodes_.size());
}

std::int64_t NodeList::devices(const ClusterSpec& cluster) const {
  return count(cluster) * cluster.devices_per_node;
}

DeviceId NodeList::device(std::size_t place, std::int64_t devices_per_node) const {
  const auto per_node = static_cast<std::size_t>(devices_per_node);
  return DeviceId(node(place / per_node).index() * per_node + place % per_node);
}

NodeId NodeList::node(std::size_t place) const {
  return nodes_.empty() ? NodeId(place) : nodes_.at(place);
}

std::optional<NodeList> read_nodes(const Value& value, const ClusterSpec& cluster, Diagnostics& diagnostics) {
  NodesReader reader(cluster.nodes(), diagnostics);
  if (!value.is_sequence()) return reader.add(value) ? std::optional(reader.take()) : std::nullopt;
  if (value.items.empty()) {
    diagnostics.error(value.position, "a job needs at least one node", "leave the key out for all nodes");
    return std::nullopt;
  }
  bool fine = true;
  for (const Value& item : value.items) fine = reader.add(item) && fine;
  return fine ? std::optional(reader.take()) : std::nullopt;
}

std::optional<IndexRange> parse_closed_range(std::string_view text) {
  const std::size_t dash = text.find('-');
  const auto first = index_of(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : index_of(text.substr(dash + 1));
  if (!first || !last || *first > *last) return std::nullopt;
  return IndexRange{.first = *first, .last = last};
}

std::optional<IndexRange> parse_index_range(std::string_view text) {
  constexpr std::string_view every = "every ";
  return text.starts_with(every) ? parse_every(text.substr(every.size())) : parse_closed_range(text);
}

}  // namespace hdpsim
