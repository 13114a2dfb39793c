#include <algorithm>

#include "sim/base/check.h"
#include "sim/network/impl/collective_plans.h"

namespace hdpsim {
namespace {

constexpr std::size_t nobody = SIZE_MAX;

/// Rings from `first` to `last` - 1, of those that the nodes have.
struct RingRange {
  std::size_t first;
  std::size_t last;
};

/// Rings that enter each node at a port, pass its other members in cyclic order and leave by the NIC of the port.
class Rings {
 public:
  /// `root`: place in the first node into which nothing goes.
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

  // Every ring goes from each member to the next, except into the port.
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

// Without ports: the ring closes inside the node.
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

CollectivePlan plan_ring(CollectivePlanBuilder builder, CollectiveKind kind, const MembersByNode& members) {
  HDPSIM_CHECK(kind != CollectiveKind::all_to_all && kind != CollectiveKind::send_recv, "no ring does {}",
               collective_name(kind));
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

}  // namespace hdpsim
