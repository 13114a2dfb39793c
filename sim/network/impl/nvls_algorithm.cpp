#include <algorithm>

#include "sim/base/check.h"
#include "sim/network/impl/algorithms.h"
#include "sim/network/impl/collective_plan_builder.h"

namespace hdpsim {
namespace {

CollectivePlan in_one_node(CollectivePlanBuilder builder, CollectiveKind kind, const MembersByNode& members) {
  const auto devices = static_cast<double>(members.devices());
  // all_gather: each device sends its 1/g once and the switch copies it; reduce_scatter the reverse; all_reduce both.
  const double shard = 1 / devices;
  const double out = kind == CollectiveKind::all_gather       ? shard
                     : kind == CollectiveKind::reduce_scatter ? 1
                                                              : 1 + shard;
  const double in = kind == CollectiveKind::all_gather ? 1 : kind == CollectiveKind::reduce_scatter ? shard : 1 + shard;
  builder.pass_nvswitch(members.of(0), out, in);
  const std::size_t passes = kind == CollectiveKind::all_reduce ? 2 : 1;
  return builder.finish(1, {.inside = passes});
}

}  // namespace

CollectivePlan plan_nvls(CollectivePlanBuilder builder, const PlanTask& task) {
  const CollectiveKind kind = task.kind;
  const MembersByNode& members = task.members;
  if (members.nodes() == 1) {
    HDPSIM_CHECK(kind == CollectiveKind::all_reduce || kind == CollectiveKind::all_gather ||
                     kind == CollectiveKind::reduce_scatter,
                 "NVSwitches do no {}", collective_name(kind));
    return in_one_node(std::move(builder), kind, members);
  }
  HDPSIM_CHECK(kind == CollectiveKind::all_reduce, "switches between nodes do no {}", collective_name(kind));
  for (std::size_t nic = 0; nic < members.nics(); ++nic) {
    for (std::size_t node = 0; node < members.nodes(); ++node) {
      const double flows = 1 + 1 / static_cast<double>(members.of(node).size());
      builder.pass_nvswitch(members.of(node), flows, flows);
    }
    add_switch_tree(builder, members, nic);
    builder.end_part();
  }
  return builder.finish(1 / static_cast<double>(members.nics()), {.inside = 2, .between = 1});
}

void append_nvls_ways(const NcclQuestion& question, std::vector<CollectiveTime>& ways) {
  static const double base = nccl::microseconds("step.nvlink.nvls");
  static const double between = nccl::microseconds("step.network.nvls");
  const NcclGroup& group = question.group;
  const bool reduces_all = question.kind == CollectiveKind::all_reduce;
  const bool gathers = question.kind == CollectiveKind::all_gather || question.kind == CollectiveKind::reduce_scatter;
  const bool several = group.nodes > 1;
  const bool does = several ? reduces_all && group.in_network_reduction : reduces_all || gathers;
  if (!group.has_nvls() || !does) return;
  const double link = several ? std::min(group.nvlink_bytes_per_s, group.node_bytes_per_s()) : group.nvlink_bytes_per_s;
  const double share = reduces_all ? nvls_all_reduce_share() : (group.in_node() - 1) / group.in_node();
  ways.push_back(nccl_time(CollectiveAlgorithm::nvls, Protocol::simple, base + (several ? between : 0),
                           link * nvls_share(group) * share, question.bytes));
}

}  // namespace hdpsim
