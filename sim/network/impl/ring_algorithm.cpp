#include <algorithm>

#include "sim/base/check.h"
#include "sim/network/impl/algorithms.h"

namespace hdpsim {
namespace {

constexpr std::size_t nobody = SIZE_MAX;

/// Rings `first` to `last` - 1 of those that the nodes have.
struct RingRange {
  std::size_t first;
  std::size_t last;
};

/// Rings that enter each node at a port, pass its other members in cyclic order and leave by the NIC of the port.
class Rings {
 public:
  /// `root`: the place in the first node that receives nothing.
  Rings(CollectivePlanBuilder& builder, const MembersByNode& members, std::size_t root)
      : builder_(builder), members_(members), root_(root) {}

  [[nodiscard]] std::size_t count() const { return members_.nics(); }

  void add(const RingRange& rings) {
    for (std::size_t node = 0; node < members_.nodes(); ++node) {
      add_inside(node, rings);
      add_between(node, rings);
    }
  }

 private:
  [[nodiscard]] std::size_t port(std::size_t node, std::size_t ring) const { return members_.ports(node)[ring]; }

  // Every ring has a hop from each member to the next, except into the port.
  void add_inside(std::size_t node, const RingRange& rings) {
    const auto members = members_.of(node);
    if (members.size() == 1) return;
    into_.assign(members.size(), static_cast<double>(rings.last - rings.first));
    for (std::size_t ring = rings.first; ring < rings.last; ++ring) into_[port(node, ring)] -= 1;
    if (node == 0 && root_ != nobody) into_[root_] = 0;
    for (std::size_t to = 0; to < members.size(); ++to) {
      const std::size_t from = (to + members.size() - 1) % members.size();
      if (into_[to] > 0) builder_.send(members[from], members[to], into_[to]);
    }
  }

  void add_between(std::size_t node, const RingRange& rings) {
    const std::size_t next = (node + 1) % members_.nodes();
    for (std::size_t ring = rings.first; ring < rings.last; ++ring) {
      const std::size_t to = port(next, ring);
      if (next == 0 && to == root_) continue;
      builder_.send(members_.of(node)[port(node, ring)], members_.of(next)[to]);
    }
  }

  CollectivePlanBuilder& builder_;
  const MembersByNode& members_;
  std::size_t root_;
  std::vector<double> into_;
};

void add_all(Rings& rings, CollectivePlanBuilder& builder) {
  if (builder.grain() == PlanGrain::whole) {
    rings.add({0, rings.count()});
    return;
  }
  for (std::size_t ring = 0; ring < rings.count(); ++ring) {
    rings.add({ring, ring + 1});
    builder.end_part();
  }
}

// The ring of a single node has no ports: it closes inside the node.
void add_ring_of_a_node(CollectivePlanBuilder& builder, std::span<const DeviceId> members, bool is_broadcast) {
  for (std::size_t from = 0; from < members.size(); ++from) {
    const std::size_t to = (from + 1) % members.size();
    if (to != 0 || !is_broadcast) builder.send(members[from], members[to]);
  }
}

double share_that_moves(std::size_t members) {
  return static_cast<double>(members - 1) / static_cast<double>(members);
}

}  // namespace

CollectivePlan plan_ring(CollectivePlanBuilder builder, const PlanTask& task) {
  const CollectiveKind kind = task.kind;
  const MembersByNode& members = task.members;
  HDPSIM_CHECK(plain_algorithm(kind) == CollectiveAlgorithm::ring, "no ring does {}", collective_name(kind));
  const bool is_broadcast = kind == CollectiveKind::broadcast;
  const std::size_t passes = kind == CollectiveKind::all_reduce ? 2 : 1;
  const std::size_t nodes = members.nodes();
  std::size_t count = 1;
  if (nodes == 1) {
    add_ring_of_a_node(builder, members.of(0), is_broadcast);
  } else {
    Rings rings(builder, members, is_broadcast ? 0 : nobody);
    count = rings.count();
    add_all(rings, builder);
  }
  const double moved = is_broadcast ? 1 : static_cast<double>(passes) * share_that_moves(members.devices());
  return builder.finish(moved / static_cast<double>(count),
                        {.inside = passes * (members.devices() - nodes), .between = passes * (nodes - 1)});
}

namespace {

double base_us(Protocol protocol) {
  static const nccl::ByProtocol base = nccl::microseconds_by_protocol("base.ring");
  return base[static_cast<std::size_t>(protocol)];
}

// Until data has passed all ranks so often.
double latency_of_passes_us(const NcclGroup& group, Protocol protocol, double passes) {
  static const nccl::ByProtocol overhead = nccl::microseconds_by_protocol("network_overhead");
  const double steps = passes * static_cast<double>(group.ranks - 1);
  const double between = passes * static_cast<double>(group.nodes - 1);
  double inside = ring_step_inside_us(group, protocol);
  if (group.nodes > 1) inside = std::max(inside, overhead[static_cast<std::size_t>(protocol)]);
  return base_us(protocol) + (steps - between) * inside + between * ring_step_between_us(group, protocol);
}

double ring_latency_us(const NcclQuestion& question, Protocol protocol) {
  const NcclGroup& group = question.group;
  if (question.kind == CollectiveKind::broadcast) {  // the ring is the same on all nodes: its chunks follow each other
    const bool is_inside = group.nodes == 1;
    return base_us(protocol) +
           (is_inside ? ring_step_inside_us(group, protocol) : hidden_ring_step_between_us(protocol));
  }
  return latency_of_passes_us(group, protocol, question.kind == CollectiveKind::all_reduce ? 2 : 1);
}

CollectiveTime ring_way(const NcclQuestion& question, Protocol protocol) {
  static const double ll_share = nccl::number("share.ring_ll");
  static const double ll128_share = nccl::number("share.ring_ll128");
  static const double plateau = nccl::number("ring_plateau.factor");
  static const double plateau_from = nccl::number("ring_plateau.bytes");
  const NcclGroup& group = question.group;
  const auto ranks = static_cast<double>(group.ranks);
  const bool reduces_all = question.kind == CollectiveKind::all_reduce;
  const double steps = reduces_all ? 2 * (ranks - 1) : question.kind == CollectiveKind::broadcast ? ranks : ranks - 1;
  double rate = group.ring_bytes_per_s();
  if (protocol == Protocol::ll) rate = std::min(group.most_of_ll(), rate * ll_share);
  if (protocol == Protocol::ll128) rate *= ll128_share;
  double latency = ring_latency_us(question, protocol);
  const bool is_large = question.bytes / (static_cast<double>(group.channels) * ranks) >= plateau_from;
  if (protocol == Protocol::simple && group.nodes > 1 && reduces_all && is_large) latency *= plateau;
  return nccl_time(CollectiveAlgorithm::ring, protocol, latency, rate * ranks / steps, question.bytes);
}

}  // namespace

double broadcast_latency_s(const NcclGroup& group, Protocol protocol) {
  constexpr double second_us = 1e6;
  return latency_of_passes_us(group, protocol, 1) / second_us;
}

void append_ring_ways(const NcclQuestion& question, std::vector<CollectiveTime>& ways) {
  if (plain_algorithm(question.kind) != CollectiveAlgorithm::ring) return;
  for (const Protocol protocol : protocols_of(question.group)) ways.push_back(ring_way(question, protocol));
}

}  // namespace hdpsim
