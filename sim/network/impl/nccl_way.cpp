#include <string>
#include <variant>

#include "sim/cluster/device_facts.h"
#include "sim/network/impl/collective_choices.h"
#include "sim/network/impl/nccl_model.h"

namespace hdpsim {
namespace {

bool has_switches(const ClusterSpec& cluster) {
  return !std::holds_alternative<TorusSpec>(cluster.fabric);
}

NcclGroup group_of(const CollectiveQuestion& question, const LinkEfficiency& efficiency) {
  const ClusterSpec& cluster = question.cluster;
  const DeviceRates rates = device_rates(question);
  return {.ranks = question.span.ranks,
          .nodes = question.span.nodes,
          .is_even = question.span.is_even,
          .nvlink_bytes_per_s = rates.inside * efficiency.nvlink,
          .network_bytes_per_s = rates.between * efficiency.network,
          .has_nvlink = cluster.has_nvlink(),
          .compute_capability = cluster.compute_capability,
          .has_amd_hosts = cluster.cpu == HostCpu::amd,
          .in_network_reduction = cluster.in_network_reduction && has_switches(cluster),
          .channels = cluster.nics_per_node};
}

}  // namespace

std::string why_no_in_network_reduction(const ClusterSpec& cluster) {
  const std::string left_out = "left out is in_network_reduction: ";
  if (!cluster.in_network_reduction) return {};
  if (!has_switches(cluster)) return left_out + "no switches join the nodes of a torus";
  if (cluster.compute_capability == unknown_capability) return left_out + "NCCL does not run on " + cluster.device;
  return {};
}

std::optional<CollectiveTerms> nccl_way(const CollectiveQuestion& question, const NcclChoice& choice) {
  if (question.cluster.compute_capability == unknown_capability) return std::nullopt;
  LinkEfficiency efficiency = message_efficiency(question.profile);
  efficiency.nvlink_latency = efficiency.network_latency = {};  // NCCL's model has its own
  std::vector<CollectiveTime> ways = nccl_ways(group_of(question, efficiency), question.kind, question.bytes);
  std::erase_if(ways, [&](const CollectiveTime& way) {
    return way.algorithm != choice.algorithm.value_or(way.algorithm) ||
           way.protocol != choice.protocol.value_or(way.protocol);
  });
  if (ways.empty()) return std::nullopt;
  const CollectiveTime best = fastest(ways);
  CollectiveTerms terms;
  terms.basis = CollectiveBasis::nccl_model;
  terms.algorithm = best.algorithm;
  terms.protocol = best.protocol;
  terms.wire_bytes = wire_bytes(best.protocol);
  terms.start_s = best.latency_s;
  terms.links = efficiency;
  terms.seconds_a_byte = 1 / best.bytes_per_s;
  return terms;
}

std::optional<CollectiveTerms> in_network_way(const CollectiveQuestion& question) {
  if (!question.cluster.in_network_reduction || question.span.nodes == 1) return std::nullopt;
  const std::optional<CollectiveTerms> terms = nccl_way(question, {});
  const bool in_network = terms && algorithms.at(static_cast<std::size_t>(terms->algorithm)).in_network;
  return in_network ? terms : std::nullopt;
}

}  // namespace hdpsim
