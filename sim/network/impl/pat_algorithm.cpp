#include <bit>

#include "sim/base/check.h"
#include "sim/network/impl/algorithms.h"

namespace hdpsim {

// Every device is the root of a binomial tree of its own part. A device at distance d from a root receives the part
// from the device at d without its lowest bit. A hop over 2^k is thus made for every d below n whose lowest bit is 2^k:
// one in 2^(k+1).
CollectivePlan plan_pat(CollectivePlanBuilder builder, const PlanTask& task) {
  HDPSIM_CHECK(task.kind == CollectiveKind::all_gather || task.kind == CollectiveKind::reduce_scatter, "PAT does no {}",
               collective_name(task.kind));
  const MembersByNode& members = task.members;
  HDPSIM_CHECK(members.has_one_each(), "{} devices on {} nodes: PAT is for one a node", members.devices(),
               members.nodes());
  const std::size_t n = members.nodes();
  for (std::size_t hop = 1; hop < n; hop *= 2) {
    const std::size_t parts = (n - 1 + hop) / (2 * hop);
    for (std::size_t from = 0; from < n; ++from) {
      builder.send(members.of(from)[0], members.of((from + hop) % n)[0], static_cast<double>(parts));
    }
  }
  return builder.finish(1 / static_cast<double>(n), {.between = static_cast<std::size_t>(std::bit_width(n - 1))});
}

// NCCL has PAT for one rank per node.
void append_pat_ways(const NcclQuestion& question, std::vector<CollectiveTime>& ways) {
  static const double base = nccl::microseconds("base.pat");
  static const double each_rank = nccl::microseconds("step.pat_rank");
  static const double network_share = nccl::number("step.pat_network_share");
  static const double share = nccl::number("share.pat");
  const NcclGroup& group = question.group;
  const bool gathers = question.kind == CollectiveKind::all_gather || question.kind == CollectiveKind::reduce_scatter;
  if (!gathers || group.nodes != group.ranks) return;
  const double latency = base + group.levels() * tree_step_between_us(Protocol::simple) * network_share +
                         each_rank * static_cast<double>(group.ranks);
  ways.push_back(
      nccl_time(CollectiveAlgorithm::pat, Protocol::simple, latency, group.ring_bytes_per_s() * share, question.bytes));
}

}  // namespace hdpsim
