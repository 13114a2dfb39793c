#include <algorithm>
#include <cmath>

#include "sim/base/check.h"
#include "sim/network/impl/algorithms.h"

namespace hdpsim {
namespace {

/// A uniform all-to-all. The unit of this class is the data of one device for one other; a flow between nodes carries
/// those of all devices of the sending node.
class AllToAll {
 public:
  AllToAll(CollectivePlanBuilder& builder, const MembersByNode& members) : builder_(builder), members_(members) {
    for (std::size_t node = 0; node < members.nodes(); ++node) {
      if (holders_.size() < members.of(node).size()) holders_.resize(members.of(node).size());
      for (std::size_t place = 0; place < members.of(node).size(); ++place) ++holders_[place];
    }
  }

  /// Units in one flow of the plan.
  [[nodiscard]] double unit() const { return members_.nodes() > 1 ? static_cast<double>(members_.of(0).size()) : 1; }

  void add() {
    for (std::size_t node = 0; node < members_.nodes(); ++node) add_inside(node);
    if (members_.nodes() == 1) return;
    if (members_.is_even()) {
      for (std::size_t place = 0; place < holders_.size(); ++place) add_plane(place);
    } else {
      add_pairs_of_nodes();
    }
  }

 private:
  // Sends to each other member its own data, and those for the same place on all other nodes.
  void add_inside(std::size_t node) {
    const auto members = members_.of(node);
    std::vector<double> through(members.size());
    for (std::size_t place = 0; place < holders_.size(); ++place) {
      const bool is_here = place < members.size();
      through[place % members.size()] += static_cast<double>(holders_[place] - (is_here ? 1 : 0));
    }
    for (std::size_t from = 0; from < members.size(); ++from) {
      for (std::size_t to = 0; to < members.size(); ++to) {
        if (from == to) continue;
        builder_.send(members[from], members[to], (1 + through[to]) / unit());
        builder_.end_part();
      }
    }
  }

  // Adds the flows between the same places of all nodes.
  void add_plane(std::size_t place) {
    plane_.clear();
    for (std::size_t node = 0; node < members_.nodes(); ++node) plane_.push_back(members_.of(node)[place]);
    builder_.send_all_pairs(plane_, 1);
  }

  void add_pairs_of_nodes() {
    for (std::size_t from = 0; from < members_.nodes(); ++from) {
      const auto senders = members_.of(from);
      for (std::size_t to = 0; to < members_.nodes(); ++to) {
        if (from == to) continue;
        for (std::size_t place = 0; place < members_.of(to).size(); ++place) {
          builder_.send(senders[place % senders.size()], members_.of(to)[place],
                        static_cast<double>(senders.size()) / unit());
          builder_.end_part();
        }
      }
    }
  }

  CollectivePlanBuilder& builder_;
  const MembersByNode& members_;
  std::vector<std::size_t> holders_;  ///< By place: number of nodes that have a member there.
  std::vector<DeviceId> plane_;
};

CollectivePlan plan_all_to_all(CollectivePlanBuilder builder, const MembersByNode& members) {
  AllToAll exchange(builder, members);
  exchange.add();
  const std::size_t several = members.nodes() > 1 ? 1 : 0;
  const std::size_t inside = members.has_one_each() ? 0 : 1;
  return builder.finish(exchange.unit() / static_cast<double>(members.devices()),
                        {.inside = inside, .between = several});
}

CollectivePlan plan_send_recv(CollectivePlanBuilder builder, std::span<const DeviceId> devices) {
  const ClusterSpec& cluster = builder.links().cluster();
  const bool stays = std::all_of(devices.begin(), devices.end(), [&](DeviceId device) {
    return cluster.node_of(device) == cluster.node_of(devices.front());
  });
  for (std::size_t from = 0; from < devices.size(); ++from) {
    builder.send(devices[from], devices[(from + 1) % devices.size()]);
    builder.end_part();
  }
  return builder.finish(1, stays ? Steps{.inside = 1} : Steps{.between = 1});
}

}  // namespace

CollectivePlan plan_direct(CollectivePlanBuilder builder, const PlanTask& task) {
  HDPSIM_CHECK(plain_algorithm(task.kind) == CollectiveAlgorithm::direct, "direct messages do no {}",
               collective_name(task.kind));
  if (task.kind == CollectiveKind::send_recv) return plan_send_recv(std::move(builder), task.devices);
  return plan_all_to_all(std::move(builder), task.members);
}

namespace {

// Rounds of messages, of which a channel has some under way at once and a rank one for each peer.
double rounds_of(const NcclGroup& group, double peers) {
  static const double channels_of_a_ring = nccl::number("p2p.channels_of_a_ring");
  static const double peers_of_a_channel = nccl::number("p2p.peers_of_a_channel");
  return std::ceil(peers / (static_cast<double>(group.channels) * channels_of_a_ring * peers_of_a_channel));
}

}  // namespace

void append_direct_ways(const NcclQuestion& question, std::vector<CollectiveTime>& ways) {
  static const nccl::ByProtocol base = nccl::microseconds_by_protocol("base.ring");
  static const double proxy_us = nccl::microseconds("p2p.proxy_message");
  if (plain_algorithm(question.kind) != CollectiveAlgorithm::direct) return;
  const NcclGroup& group = question.group;
  const bool is_pair = question.kind == CollectiveKind::send_recv;
  const auto ranks = static_cast<double>(group.ranks);
  const double rounds = is_pair ? 1 : rounds_of(group, ranks - 1);
  const double step =
      group.nodes > 1 ? hidden_ring_step_between_us(Protocol::simple) : ring_step_inside_us(group, Protocol::simple);
  double seconds_a_byte = 0;
  if (group.in_node() > 1) {
    seconds_a_byte = (is_pair ? 1 : (group.in_node() - 1) / ranks) / group.nvlink_bytes_per_s;
  }
  if (group.nodes > 1) {
    const double share = is_pair ? 1 : (ranks - group.in_node()) / ranks;
    seconds_a_byte = std::max(seconds_a_byte, share / group.network_bytes_per_s);
  }
  CollectiveTime way = nccl_time(CollectiveAlgorithm::direct, Protocol::simple,
                                 base.at(static_cast<std::size_t>(Protocol::simple)) + rounds * step,
                                 1 / seconds_a_byte, question.bytes);
  if (!is_pair) way.messages_s = (ranks - group.in_node()) * proxy_us * 1e-6;
  way.seconds = way.latency_s + std::max(question.bytes * seconds_a_byte, way.messages_s);
  ways.push_back(way);
}

}  // namespace hdpsim
