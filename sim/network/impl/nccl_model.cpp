#include "sim/network/impl/nccl_model.h"

#include <algorithm>
#include <cmath>

#include "sim/base/check.h"
#include "sim/network/impl/algorithms.h"

namespace hdpsim {
namespace {

using nccl::ByProtocol;

double at(const ByProtocol& figures, Protocol protocol) {
  return figures.at(static_cast<std::size_t>(protocol));
}

}  // namespace

double NcclGroup::ring_bytes_per_s() const {
  if (nodes == 1) return nvlink_bytes_per_s;
  return ranks == nodes ? node_bytes_per_s() : std::min(nvlink_bytes_per_s, node_bytes_per_s());
}

double NcclGroup::most_of_ll() const {
  static const std::vector<double> intel = nccl::rates("ll_most.intel");
  static const std::vector<double> amd = nccl::rates("ll_most.amd");
  static const auto inside = nccl::ByCapability::rates("ll_most.inside", "rate");
  if (nodes > 1) return (has_amd_hosts ? amd : intel).at(nodes == 2 ? 0 : 1);
  return inside.at(compute_capability);
}

double NcclGroup::levels() const {
  return std::floor(std::log2(static_cast<double>(nodes)));
}

CollectiveTime nccl_time(CollectiveAlgorithm algorithm, Protocol protocol, double latency_us, double bytes_per_s,
                         double bytes) {
  constexpr double microsecond = 1e-6;
  const double latency = latency_us * microsecond;
  return {algorithm, protocol, latency, bytes_per_s, latency + bytes / bytes_per_s};
}

std::vector<Protocol> protocols_of(const NcclGroup& group) {
  if (!group.has_nvlink) return {Protocol::ll, Protocol::simple};
  return {Protocol::ll, Protocol::ll128, Protocol::simple};
}

double nvls_share(const NcclGroup& group) {
  static const auto share = nccl::ByCapability::numbers("share.nvls", "share");
  return share.at(group.compute_capability);
}

double nvls_all_reduce_share() {
  static const double share = nccl::number("share.nvls_all_reduce");
  return share;
}

double ring_step_inside_us(const NcclGroup& group, Protocol protocol) {
  static const ByProtocol nvlink = nccl::microseconds_by_protocol("step.nvlink.ring");
  static const ByProtocol pcie = nccl::microseconds_by_protocol("step.pcie.ring");
  return at(group.has_nvlink ? nvlink : pcie, protocol);
}

double tree_step_inside_us(const NcclGroup& group, Protocol protocol) {
  static const ByProtocol nvlink = nccl::microseconds_by_protocol("step.nvlink.tree");
  static const ByProtocol pcie = nccl::microseconds_by_protocol("step.pcie.tree");
  return at(group.has_nvlink ? nvlink : pcie, protocol);
}

double ring_step_between_us(const NcclGroup& group, Protocol protocol) {
  return group.ranks > group.nodes ? hidden_ring_step_between_us(protocol) : tree_step_between_us(protocol);
}

double hidden_ring_step_between_us(Protocol protocol) {
  static const ByProtocol network = nccl::microseconds_by_protocol("step.network.ring");
  return at(network, protocol);
}

double tree_step_between_us(Protocol protocol) {
  static const ByProtocol network = nccl::microseconds_by_protocol("step.network.tree");
  return at(network, protocol);
}

std::vector<CollectiveTime> nccl_ways(const NcclGroup& group, CollectiveKind kind, std::int64_t bytes) {
  HDPSIM_CHECK(group.ranks > 1 && group.nodes > 0 && group.ranks >= group.nodes && group.channels > 0,
               "{} ranks on {} nodes, {} channels", group.ranks, group.nodes, group.channels);
  const NcclQuestion question{group, kind, static_cast<double>(bytes)};
  std::vector<CollectiveTime> ways;
  for (const AlgorithmEntry& algorithm : algorithms) algorithm.append_ways(question, ways);
  return ways;
}

}  // namespace hdpsim
