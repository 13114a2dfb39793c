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

std::vector<CollectiveTerms> nccl_ways(const CollectiveQuestion& question, const NcclChoice& choice) {
  if (question.cluster.compute_capability == unknown_capability) return {};
  const LinkEfficiency efficiency = ring_efficiency(question);  // without latencies: NCCL's model has its own
  std::vector<CollectiveTerms> all;
  for (const CollectiveTime& way : nccl_ways(group_of(question, efficiency), question.kind, question.bytes)) {
    const bool is_allowed = way.algorithm == choice.algorithm.value_or(way.algorithm) &&
                            way.protocol == choice.protocol.value_or(way.protocol);
    if (!is_allowed) continue;
    CollectiveTerms& terms = all.emplace_back();
    terms.basis = CollectiveBasis::nccl_model;
    terms.algorithm = way.algorithm;
    terms.protocol = way.protocol;
    terms.wire_bytes = wire_bytes(way.protocol);
    terms.start_s = way.latency_s;
    terms.messages_s = way.messages_s;
    terms.links = efficiency;
    terms.seconds_a_byte = 1 / way.bytes_per_s;
  }
  return all;
}

}  // namespace hdpsim
